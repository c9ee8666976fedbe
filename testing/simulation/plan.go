package simulation

import (
	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

// The faults of a simulation.
type (
	// Plan is what goes wrong and when. It is a value: its Code is Go source. What it does to a request is decided by
	// the plan and the request alone, not by the order in which goroutines run, nor by other requests or faults.
	Plan = plan.Plan
	// Fault is what goes wrong at requests that are named by their actor, verb and path, and by how many of the same
	// came before. Recorders hold a mutex while they write events, and virtual time must not pass meanwhile: Throttles
	// and UserDeletes pass over these requests, and a story is not told if a Fault names them.
	Fault = fault.Fault
	// FaultKind is what goes wrong at a request.
	FaultKind = fault.Kind
	// Chance is a fault that strikes requests at random, as a seed draws them.
	Chance = plan.Chance
	// Clock is the clock of an actor that is wrong.
	Clock = plan.Clock
	// PlanOptions say what [PlanFromSeed] may draw.
	PlanOptions = plan.Options
)

// The kinds of faults.
const (
	// Refuses lets the connection be refused. The request has no effect.
	Refuses = fault.Refuses
	// Fails answers 500, an internal error. The request has no effect.
	Fails = fault.Fails
	// LosesAnswer breaks the connection after the request had its effect.
	LosesAnswer = fault.LosesAnswer
	// Conflicts has somebody else write the object just before an update, a patch, an apply or a delete, by an
	// annotation, which is taken off again afterwards. The API server answers 409 if the request names a version, or
	// conflicts in another way. A request of the operator that undoes what somebody wrote fails the story.
	Conflicts = fault.Conflicts
	// Throttles answers 429. Clients are asked to try again after the delay of the fault, in full seconds and at least
	// one. The request has no effect.
	Throttles = fault.Throttles
	// Expires answers 410 to a list or a watch.
	Expires = fault.Expires
	// CutsWatch breaks the connection of a watch when it is as old as the delay of the fault.
	CutsWatch = fault.CutsWatch
	// DelaysWatch lets each event of a watch arrive late, by the delay of the fault, but for those with which the watch
	// begins: the cache that the watch feeds is stale.
	DelaysWatch = fault.DelaysWatch
	// DiesBefore ends the process of the actor. The request has no effect.
	DiesBefore = fault.DiesBefore
	// DiesAfter ends the process of the actor after the request had its effect, before the answer arrives.
	DiesAfter = fault.DiesAfter
	// Restarts restarts the API server. All connections break, and new ones are refused, that of the request too, until
	// the delay of the fault is over. The request has no effect.
	Restarts = fault.Restarts
	// UserDeletes has the user delete the resource that a request is about just before a write, or before a call of
	// something outside of the cluster, or later by the delay of the fault: the object of the request or its owner, if
	// the story created it, or else the last custom resource that the story created. Up to the step in which the story
	// deletes it, what the story does and checks does not count, as the resource is not there: the story has to hold
	// afterwards. What [World.Wrote] and [World.Golden] check does not count at all.
	UserDeletes = fault.UserDeletes
)

// PlanFromSeed draws a plan, as [RunSeeds] does. Each kind of fault is in half of all plans.
func PlanFromSeed(seed uint64, options PlanOptions) Plan { return plan.FromSeed(seed, options) }
