// Package engine deploys a component: it observes, plans and executes.
//
// One [Engine.Run] goes as far as the cluster allows and returns. It does not wait for the cluster, except for the
// moment in which watches show what it has deleted. The [Report] says what is left to wait for. The observer wakes the
// component when an object of it changes.
//
// The life of a manifest object:
//
//  1. A generator returns it. manifest.Prepare finds it in its cache, or checks it, completes it and takes its digest
//     (manifest/prepare.go).
//  2. Run loads the inventory, with the record of the object (inventory/status.go or inventory/objects.go).
//  3. Run observes the object, by a watch (observe/watching.go) or by a request (observe/direct.go).
//  4. The planner compares what is desired, recorded and observed. It returns the next stage of operations
//     (plan/planner.go; plan/make.go for the first stage).
//  5. Run saves the records of new objects before it creates any of them (engine.go).
//  6. The executor makes the requests of the stage (stage.go, execute/execute.go). It fences off a type before it
//     deletes it, so that no instances are created meanwhile (fences.go, foreign/protocol.go).
//  7. The results go to the observer and into the records (stage.go, plan/record.go). Corrections of what other clients
//     have changed are counted (corrections.go). Run continues with step 4 until no operation is left. A run that has
//     deleted all that it could looks once more (stage.go).
//  8. Run saves the inventory. The caller writes the status of the component.
//
// A run that left nothing to do is remembered. The next request needs no run as long as nothing has changed
// (memory.go).
package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Engine is what the deployment of one component needs. It is made for one request.
type Engine struct {
	// Client reads past the cache and writes, with the identity that the component is deployed with.
	Client client.Client
	// Discovery is asked about types whose scope seems to have changed. Optional.
	Discovery discovery.DiscoveryInterface
	Observer  observe.Observer
	Store     inventory.Store
	Guard     execute.Guard
	Memory    *Memory

	Component observe.Component
	Mark      execute.Mark
	// FieldManager is the field manager of all writes. Reclaim has the prefixes of the managers whose fields may be
	// taken.
	FieldManager string
	Reclaim      []string
	// Parallel is how many requests are made at the same time. The executor has a default.
	Parallel int
}

// Task is what is to be done.
type Task struct {
	// Deleting reports whether the component is going. Objects are then ignored.
	Deleting bool
	// Orphan has all objects stay when the component is deleted, without what makes them the component's.
	Orphan bool
	// Objects are the desired ones, except for those in Leaving.
	Objects []manifest.Object
	// Leaving has what becomes of objects that are not desired, in place of the delete policies in their records. If
	// Suspended is set, an object that is gone for good keeps its record.
	Leaving map[plan.Key]apis.DeletePolicy
	// AllowEmpty has all objects go if Objects is empty. Otherwise nothing is done then.
	AllowEmpty bool
	// Suspended says whether an object is suspended, in place of how ready it is; nil unless the objects are to be.
	Suspended func(live *unstructured.Unstructured) readiness.Result
	// Namespaces are created if they are missing.
	Namespaces []string
	// Patterns are additional managed types.
	Patterns []plan.Pattern
	// DryRun writes nothing, neither to the cluster nor to the inventory.
	DryRun bool
	// Previews is how many writes of objects that exist are tried on the API server in a dry run, at most.
	Previews int
	// BeforeDelete is called once nothing is seen to block the deletion of the component, and before anything is
	// fenced off or deleted. It is not called again as long as the deletion goes on in the same process. Optional.
	BeforeDelete func(ctx context.Context) error
	// BeforeCreate is called before anything is recorded to be created, or created. After an error, nothing is. It
	// reads whether the task is still the one to carry out: an object may be gone because another process of the
	// operator, which knows better, has deleted it. Optional.
	BeforeCreate func(ctx context.Context) error
	// NamespaceGoes reports whether a namespace is being deleted, or is gone. It is asked if an object in it may not be
	// read or deleted: the object then goes with it. Optional.
	NamespaceGoes func(ctx context.Context, name string) (bool, error)
	Now           time.Time
}

// Report is how far a run came.
type Report struct {
	// Plan is the last one made. With DryRun it is the first.
	Plan plan.Plan
	// Input is what that plan was made from.
	Input plan.Input
	// Previews are those that the task asks for.
	Previews []execute.Preview
	// Inventory is as it is to be kept.
	Inventory []apis.InventoryRecord
	// Recorded is how many records were added that are not durable yet. Nothing was done about their objects. The
	// caller makes them durable and comes back.
	Recorded int
	// Results are the outcomes of all operations, in the order in which they were carried out, without the objects.
	Results []execute.Result
	// Left are objects that would have had to go, and are not ours any more.
	Left []plan.Obstacle
	// Unchanged reports whether there was no run, since nothing has changed.
	Unchanged bool
	// Failures has why objects could not be written or deleted, by key.
	Failures map[plan.Key]error
	// Syncing and Polled come from observe.Observation.
	Syncing []schema.GroupKind
	Polled  map[schema.GroupKind]string
	// Waits reports whether something has to be waited for that no watch shows.
	Waits bool
	// RetryAt is when to come back, if the margins of fences are all that is waited for, or fences that could not be
	// put up are all that blocks; else zero.
	RetryAt time.Time
	// Futile reports whether an object does not become as desired when it is written.
	Futile bool
}

// Changed reports whether the run wrote anything but the inventory, unless that was futile.
func (r *Report) Changed() bool {
	return !r.Futile && slices.ContainsFunc(r.Results, func(result execute.Result) bool {
		stays := result.Use.State != plan.ForeignUnchecked && result.Use.State != plan.ForeignNone
		return result.Err == nil && result.Operation.Action != plan.ActionCheck && !stays
	})
}

// run is the state of one Run.
type run struct {
	*Engine
	task   Task
	in     plan.Input
	report *Report
	// planner makes the plans from in.
	planner *plan.Planner
	// recorded has what the durable records say.
	recorded  map[plan.Key]inventory.Decisions
	objects   map[plan.Key]*manifest.Object
	interests map[plan.Key]*observe.Interest
	// readOnly are the objects that are only read.
	readOnly []plan.Key
	// fenced reports whether an object was observed that has a fence.
	fenced bool
	// calledBeforeCreate reports whether BeforeCreate was called.
	calledBeforeCreate bool
	// awaitedDeleted reports whether the run has waited for watches to show what it deleted.
	awaitedDeleted bool
	// unsaved are the objects that this process created, or may have, and of which the stored inventory does not say
	// that they exist.
	unsaved map[plan.Key]bool
	// succeeded are the operations that were carried out with success.
	succeeded map[operationKey]bool
	// refused are the refused writes that [run.release] did not look at yet.
	refused []plan.Refusal
	// writers has who made corrections of this run necessary, as far as is known.
	writers map[plan.Key]plan.Writers
}

// Run deploys the component as far as it can be, or takes it away. The report is never nil. The error joins the errors
// of all objects, in stable order; the inventory in the report is to be kept all the same.
func (e *Engine) Run(ctx context.Context, task Task) (*Report, error) {
	r := &run{Engine: e, task: task, report: &Report{}}
	e.Memory.unchanged = nil
	if !task.Deleting && !task.DryRun {
		e.Memory.calledBeforeDelete = false
	}
	err := r.run(ctx)
	r.watchObstacles()
	if r.planner != nil && !task.DryRun {
		r.keepUnsaved()
	}
	if err == nil {
		e.Memory.unchanged = r.unchanged()
	}
	if len(e.Memory.fresh) == 0 {
		// An empty map keeps the memory of what it had.
		e.Memory.fresh = nil
	}
	return r.report, err
}

func (r *run) run(ctx context.Context) error {
	stored, err := r.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("unable to load the inventory: %w", err)
	}
	r.prepare(stored)
	r.report.Inventory = r.in.Inventory
	if err := r.observe(ctx); err != nil {
		return err
	}
	if len(r.Memory.refusals) > 0 {
		r.recallRefusals(ctx)
	}
	var failed error
	if r.fenced && !r.task.DryRun {
		failed = r.liftFencesOfDesired(ctx)
	}
	r.planner = plan.New(&r.in)
	for {
		next := r.planner.Next()
		r.report.Plan, r.report.Input = next, r.in
		r.noteLeft(ctx, next.Left)
		if r.task.DryRun {
			r.report.Inventory = next.Inventory
			r.preview(ctx)
			return nil
		}
		if durable, err := r.record(ctx, next); err != nil || !durable {
			r.report.Inventory = r.planner.Inventory()
			return errors.Join(failed, err)
		}
		repeated, stuck := r.giveUpRepeated(ctx, next)
		if len(next.Next.Operations) == 0 || stuck {
			if again, err := r.lookAgain(ctx, next); err != nil {
				return errors.Join(failed, err)
			} else if !again {
				break
			}
			continue
		}
		if repeated {
			continue
		}
		stageErr, err := r.executeStage(ctx, next)
		if err != nil {
			// The deletion has not begun, so the next request calls BeforeDelete again.
			r.report.Inventory = r.in.Inventory
			return errors.Join(failed, err, r.save(ctx))
		}
		failed = errors.Join(failed, stageErr)
		if err := ctx.Err(); err != nil {
			r.report.Inventory = r.planner.Inventory()
			return errors.Join(failed, err)
		}
	}
	r.conclude(ctx)
	return errors.Join(failed, r.save(ctx))
}

// conclude completes the report of a run that left no operation to do.
func (r *run) conclude(ctx context.Context) {
	r.report.Inventory = r.planner.Inventory()
	r.report.Plan.Inventory, r.report.Input.Inventory = r.report.Inventory, r.report.Inventory
	if r.task.Deleting {
		r.liftFencesOfBlocked(ctx)
	}
	if r.report.RetryAt = r.marginsOver(); len(r.Memory.refusals) > 0 && r.report.RetryAt.IsZero() {
		r.report.RetryAt = r.retryAt()
	}
	r.Memory.forget(r.task.Now)
}

// watchObstacles has the objects watched that are in the way and not ours, and those that are only read. No other watch
// shows most of them.
func (r *run) watchObstacles() {
	if r.task.DryRun {
		return
	}
	keys := r.readOnly
	for i := range r.report.Plan.Obstacles {
		o := &r.report.Plan.Obstacles[i]
		if o.Kind != plan.ObstacleNotOurs && o.Kind != plan.ObstacleWaiting {
			continue
		}
		if seen := r.report.Input.Observed[o.Key]; seen.Presence == plan.Present && seen.Ownership != plan.Ours {
			keys = append(keys, o.Key)
		}
	}
	if !r.Observer.WatchNames(r.Component, keys) {
		r.report.Waits = true
	}
}

// prepare makes the input of the first plan.
func (r *run) prepare(stored []apis.InventoryRecord) {
	r.in = plan.Input{
		Deleting:    r.task.Deleting,
		Orphan:      r.task.Deleting && r.task.Orphan,
		Inventory:   r.recallUnsaved(stored),
		Patterns:    r.task.Patterns,
		Failed:      map[plan.Key]string{},
		Uses:        map[plan.Key]plan.Use{},
		PatternUses: map[int]plan.Use{},
		Corrections: r.Memory.corrections,
		Now:         r.task.Now,
	}
	r.recorded = make(map[plan.Key]inventory.Decisions, len(stored))
	for i := range stored {
		r.recorded[plan.KeyOf(stored[i])] = inventory.DecisionsOf(&stored[i])
	}
	if r.task.Deleting {
		return
	}
	r.in.Leaving, r.in.Suspended = r.task.Leaving, r.task.Suspended != nil
	r.in.AllowEmpty = r.task.AllowEmpty
	r.objects = make(map[plan.Key]*manifest.Object, len(r.task.Objects))
	r.in.Desired = make([]plan.Desired, 0, len(r.task.Objects))
	ended := r.endedLeaving(stored)
	for i := range r.task.Objects {
		object := &r.task.Objects[i]
		if _, leaves := r.in.Leaving[object.Desired.Key]; leaves && !ended[object.Desired.Key] {
			continue
		}
		if object.Desired.ReadOnly {
			if _, ours := r.recorded[object.Desired.Key]; ours {
				r.letGo(object.Desired.Key)
				continue
			}
			r.readOnly = append(r.readOnly, object.Desired.Key)
		}
		r.in.Desired = append(r.in.Desired, object.Desired)
		r.objects[object.Desired.Key] = object
	}
}

// letGo orphans an object of the component that is only to be read. The next request reads it.
func (r *run) letGo(key plan.Key) {
	leaving := maps.Clone(r.in.Leaving)
	if leaving == nil {
		leaving = map[plan.Key]apis.DeletePolicy{}
	}
	leaving[key] = apis.DeleteOrphan
	r.in.Leaving, r.report.Waits = leaving, true
}

// endedLeaving returns which objects are gone for good and would leave only to be suspended.
func (r *run) endedLeaving(stored []apis.InventoryRecord) map[plan.Key]bool {
	if len(r.task.Leaving) == 0 || r.task.Suspended == nil {
		return nil
	}
	ended := map[plan.Key]bool{}
	for i := range stored {
		ended[plan.KeyOf(stored[i])] = stored[i].Phase == apis.PhaseCompleted
	}
	return ended
}

// record makes the keys of records durable before anything is done about their objects (invariant L2). It does the same
// for the decisions to purge and to adopt an object. It reports whether all are durable.
func (r *run) record(ctx context.Context, p plan.Plan) (durable bool, err error) {
	if err := r.beforeCreate(ctx, p); err != nil {
		return false, err
	}
	records := p.Inventory
	if records == nil {
		// All keys were recorded with an earlier plan.
		if !slices.ContainsFunc(p.Next.Operations, r.decidesAnew) {
			return true, nil
		}
		records = r.planner.Inventory()
	}
	var added []*apis.InventoryRecord
	for i := range records {
		before, ok := r.recorded[plan.KeyOf(records[i])]
		if !ok || !before.Have(&records[i]) {
			added = append(added, &records[i])
		}
	}
	if len(added) == 0 {
		return true, nil
	}
	durable, err = r.Store.Save(ctx, records)
	if err != nil {
		return false, fmt.Errorf("unable to record %d objects before they are created, adopted or purged: %w",
			len(added), err)
	}
	for _, record := range added {
		key := plan.KeyOf(*record)
		if _, ok := r.recorded[key]; !ok {
			r.Memory.setFresh(key)
		}
		if durable {
			r.recorded[key] = inventory.DecisionsOf(record)
		}
	}
	if !durable {
		r.report.Recorded = len(added)
	}
	return durable, nil
}

// decidesAnew reports whether the record of an operation has a decision that is not durable.
func (r *run) decidesAnew(o plan.Operation) bool {
	record, ok := r.planner.Record(o.Key)
	before, recorded := r.recorded[o.Key]
	return ok && (!recorded || !before.Have(&record))
}

// save keeps what the run has found out. A run that had to wait until watches show anything has found out nothing.
func (r *run) save(ctx context.Context) error {
	if len(r.report.Results) == 0 && len(r.report.Syncing) > 0 {
		return nil
	}
	if _, err := r.Store.Save(ctx, r.report.Inventory); err != nil {
		return fmt.Errorf("unable to save the inventory: %w", err)
	}
	return nil
}

// giveUpRepeated gives up the operations of the next stage that were carried out before in this run. What is written is
// then changed by admission, for instance, so it would be written for ever. A desired object is contested from then on.
// repeated reports whether there are such operations, stuck whether the plan has them although they were given up.
func (r *run) giveUpRepeated(ctx context.Context, p plan.Plan) (repeated, stuck bool) {
	for i := range p.Next.Operations {
		o := &p.Next.Operations[i]
		if !r.succeeded[keyOf(o)] {
			continue
		}
		repeated = true
		r.planner.Changed(o.Key)
		if c := r.Memory.corrections[o.Key]; o.Undoes != "" && !c.Persistent && r.objects[o.Key] != nil {
			c = c.After(*o, r.objects[o.Key].Desired.Digest, r.task.Now).Futile()
			c.Writers = r.writersOf(ctx, r.executor(p), *o)
			r.Memory.setCorrections(o.Key, c)
			r.in.Corrections = r.Memory.corrections
			continue
		}
		if _, known := r.in.Failed[o.Key]; known {
			stuck = true
		}
		r.in.Failed[o.Key] = messageFutile
		r.report.Waits, r.report.Futile = true, true
	}
	return repeated, stuck
}

const messageFutile = "it is not as desired after it was written; a webhook or another controller keeps changing it"
