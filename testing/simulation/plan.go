package simulation

import (
	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation/internal/plan"
)

// The faults of a simulation.
type (
	// Plan is what goes wrong and when. It is a value: its Code is Go source. What it does to a request is decided by
	// the plan and the request alone, not by the order in which goroutines run, nor by other requests or faults.
	Plan = plan.Plan
	// Fault is what goes wrong at requests that are named by their actor, verb and path, and by how many of the same
	// came before.
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
	// Conflicts answers 409 to a write of an existing object: somebody else has just written it, by an annotation that
	// is put on and taken off again. The request has no effect.
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
)

// PlanFromSeed draws a plan, as [RunSeeds] does. Each kind of fault is in half of all plans.
func PlanFromSeed(seed uint64, options PlanOptions) Plan { return plan.FromSeed(seed, options) }
