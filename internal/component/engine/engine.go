// Package engine deploys a component: it puts observing, planning and executing together.
//
// One [Run] goes as far as the cluster allows and returns. It never waits for the cluster: what is left to wait for is in the
// report, and the observer wakes the component when something of it changes.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Engine is what deploying one component takes. It is made for one request.
type Engine struct {
	// Client reads past the cache and writes, with the identity that the component is deployed with.
	Client   client.Client
	Observer observe.Observer
	Store    inventory.Store
	Guard    execute.Guard
	Memory   *Memory

	Component observe.Component
	Mark      execute.Mark
	// FieldManager is the one that all is written as, Reclaim the prefixes of the managers whose fields may be taken.
	FieldManager string
	Reclaim      []string
	// Parallel is how many requests are made at the same time. Default: that of the executor.
	Parallel int
}

// Memory is what is worth keeping of a component from request to request. Losing it costs a few reads. The zero value is empty.
type Memory struct {
	// fresh are the records that this process made, of objects that it did not try to create since, or was refused: nothing of
	// them can exist unseen, unless somebody else made it.
	fresh map[plan.Key]bool
	// namespaces are those that were found or made, by name.
	namespaces map[string]bool
	// Manifests remembers what was prepared.
	Manifests manifest.Cache
}

// note notes that an object that is recorded was not created by us.
func (m *Memory) note(key plan.Key) {
	if m.fresh == nil {
		m.fresh = map[plan.Key]bool{}
	}
	m.fresh[key] = true
}

// Task is what is to be done.
type Task struct {
	// Deleting: the component is going. Objects are then ignored.
	Deleting bool
	// Objects are those desired.
	Objects []manifest.Object
	// Namespaces are to be created where they are missing.
	Namespaces []string
	// Patterns are additional managed types.
	Patterns []plan.Pattern
	// DryRun: nothing is written, neither to the cluster nor to the inventory.
	DryRun bool
	// BeforeDelete is called once nothing is seen to block the deletion of the component, and before anything is done about it.
	// Optional.
	BeforeDelete func(ctx context.Context) error
	Now          time.Time
}

// Report is how far a run came.
type Report struct {
	// Plan is the last one made. With DryRun it is the first.
	Plan plan.Plan
	// Input is what that plan was made from.
	Input plan.Input
	// Inventory is as it is to be kept.
	Inventory []apis.InventoryRecord
	// Recorded: records were added that are not durable yet, so nothing was done about their objects. The caller makes them
	// durable and comes back.
	Recorded int
	// Results are what became of all operations, in the order in which they were carried out.
	Results []execute.Result
	// Syncing, Polled: see observe.Observation.
	Syncing []schema.GroupKind
	Polled  map[schema.GroupKind]string
	// Waits: something has to be waited for that nobody watches.
	Waits bool
	// Futile: an object does not become what is desired, whatever is written.
	Futile bool
}

// Changed tells whether the run wrote anything but the inventory, and to some end.
func (r *Report) Changed() bool {
	return !r.Futile && slices.ContainsFunc(r.Results, func(result execute.Result) bool {
		return result.Err == nil && result.Operation.Action != plan.ActionCheck
	})
}

// run is the state of one Run.
type run struct {
	*Engine
	task   Task
	in     plan.Input
	report *Report
	stored map[plan.Key]bool
	// purges are the keys of records that say durably that the object is purged.
	purges  map[plan.Key]bool
	objects map[plan.Key]*manifest.Object
	known   map[plan.Key]observe.Interest
	// announced: BeforeDelete was called.
	announced bool
	// tried are the operations that were carried out with success.
	tried map[operationKey]bool
}

// operationKey is what an operation does, whatever for.
type operationKey struct {
	plan.Key
	action  plan.Action
	pattern int
}

func keyOf(o *plan.Operation) operationKey {
	return operationKey{Key: o.Key, action: o.Action, pattern: o.Pattern}
}

// Run deploys the component as far as it can be, or takes it away. The report is never nil. The error joins what went wrong,
// object by object, in stable order; the inventory in the report is to be kept all the same.
func (e *Engine) Run(ctx context.Context, task Task) (*Report, error) {
	r := &run{Engine: e, task: task, report: &Report{}}
	return r.report, r.run(ctx)
}

func (r *run) run(ctx context.Context) error {
	stored, err := r.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("unable to load the inventory: %w", err)
	}
	r.report.Inventory = stored
	r.prepare(stored)
	if err := r.observe(ctx); err != nil {
		return err
	}
	failed := r.release(ctx)
	for {
		next := plan.Make(r.in)
		r.report.Plan, r.report.Input, r.report.Inventory = next, r.in, next.Inventory
		if r.task.DryRun {
			return nil
		}
		if durable, err := r.record(ctx, next.Inventory); err != nil || !durable {
			return errors.Join(failed, err)
		}
		repeats, stuck := r.repeats(next.Next)
		if len(next.Next.Operations) == 0 || stuck {
			break
		}
		if repeats {
			continue
		}
		if err := r.announceRemoval(ctx, next.Next); err != nil {
			return errors.Join(failed, r.unannounced(ctx, err))
		}
		carried, err := r.carryOut(ctx, next)
		if err != nil {
			return errors.Join(failed, r.unannounced(ctx, err))
		}
		failed = errors.Join(failed, carried)
		if err := ctx.Err(); err != nil {
			return errors.Join(failed, err)
		}
	}
	r.liftFences(ctx)
	return errors.Join(failed, r.save(ctx))
}

// prepare makes the input of the first plan.
func (r *run) prepare(stored []apis.InventoryRecord) {
	r.in = plan.Input{
		Deleting:    r.task.Deleting,
		Inventory:   stored,
		Patterns:    r.task.Patterns,
		Failed:      map[plan.Key]string{},
		Uses:        map[plan.Key]plan.Use{},
		PatternUses: map[int]plan.Use{},
		Now:         r.task.Now,
	}
	r.stored, r.purges = make(map[plan.Key]bool, len(stored)), map[plan.Key]bool{}
	for i := range stored {
		r.stored[plan.KeyOf(stored[i])] = true
		r.purges[plan.KeyOf(stored[i])] = inventory.Purged(&stored[i])
	}
	if r.task.Deleting {
		return
	}
	r.objects = make(map[plan.Key]*manifest.Object, len(r.task.Objects))
	r.in.Desired = make([]plan.Desired, len(r.task.Objects))
	for i := range r.task.Objects {
		object := &r.task.Objects[i]
		r.in.Desired[i] = object.Desired
		r.objects[object.Desired.Key] = object
	}
}

// observe finds out what there is of all that is desired or recorded.
func (r *run) observe(ctx context.Context) error {
	r.known = make(map[plan.Key]observe.Interest, len(r.in.Inventory)+len(r.in.Desired))
	interests := make([]observe.Interest, 0, len(r.in.Inventory)+len(r.in.Desired))
	add := func(interest observe.Interest) {
		interests = append(interests, interest)
		r.known[interest.Key] = interest
	}
	for i := range r.in.Inventory {
		record := &r.in.Inventory[i]
		key := plan.KeyOf(*record)
		interest := observe.Interest{
			Key: key, Version: record.Version, UID: record.UID,
			Fresh: record.UID == "" && r.Memory.fresh[key],
		}
		if err := r.fill(&interest); err != nil {
			return err
		}
		add(interest)
	}
	for i := range r.in.Desired {
		if desired := &r.in.Desired[i]; !r.stored[desired.Key] {
			interest := observe.Interest{Key: desired.Key, Version: desired.Version, Fresh: !r.task.DryRun}
			if err := r.fill(&interest); err != nil {
				return err
			}
			add(interest)
		}
	}
	observation, err := r.Observer.Observe(ctx, r.Component, interests)
	if err != nil {
		return fmt.Errorf("unable to observe the objects of the component: %w", err)
	}
	r.in.Observed = observation.Objects
	if r.in.Observed == nil {
		r.in.Observed = map[plan.Key]plan.Observed{}
	}
	r.report.Syncing, r.report.Polled = observation.Syncing, observation.Polled
	return nil
}

// fill adds what the desired object says to an interest.
func (r *run) fill(interest *observe.Interest) error {
	object, ok := r.objects[interest.Key]
	if !ok {
		return nil
	}
	interest.Version = object.Desired.Version
	interest.Settings = object.Settings
	interest.Readiness = true
	if object.Confidential {
		data, err := object.Data()
		if err != nil {
			return fmt.Errorf("unable to compare the data of %s: %w", interest.Key, err)
		}
		interest.Confidential, interest.Data = true, data
	}
	return nil
}

// record makes the keys of records durable before anything is done about their objects (law L2), and that an object is to be purged before
// it is: one that is gone without that would be created again. It tells whether they are.
func (r *run) record(ctx context.Context, records []apis.InventoryRecord) (durable bool, err error) {
	added := 0
	for i := range records {
		if key := plan.KeyOf(records[i]); !r.stored[key] || inventory.Purged(&records[i]) && !r.purges[key] {
			added++
		}
	}
	if added == 0 {
		return true, nil
	}
	durable, err = r.Store.Save(ctx, records)
	if err != nil {
		return false, fmt.Errorf("unable to record %d objects before they are created or purged: %w", added, err)
	}
	for i := range records {
		key := plan.KeyOf(records[i])
		if !r.stored[key] {
			r.Memory.note(key)
		}
		if durable {
			r.stored[key] = true
			r.purges[key] = r.purges[key] || inventory.Purged(&records[i])
		}
	}
	if !durable {
		r.report.Recorded = added
	}
	return durable, nil
}

func (r *run) save(ctx context.Context) error {
	if _, err := r.Store.Save(ctx, r.report.Inventory); err != nil {
		return fmt.Errorf("unable to save the inventory: %w", err)
	}
	return nil
}

// repeats tells whether the stage has operations that were carried out before in this run, and gives up on these: what we write is
// changed as it is written, by admission for instance, and to write it again would go on for ever. stuck tells that the plan does not
// give up.
func (r *run) repeats(stage plan.Stage) (repeats, stuck bool) {
	for i := range stage.Operations {
		o := &stage.Operations[i]
		if !r.tried[keyOf(o)] {
			continue
		}
		repeats = true
		if _, known := r.in.Failed[o.Key]; known {
			stuck = true
		}
		r.in.Failed[o.Key] = messageFutile
	}
	r.report.Waits = r.report.Waits || repeats
	r.report.Futile = r.report.Futile || repeats
	return repeats, stuck
}

const messageFutile = "it is not as desired after it was written, so somebody changes it as it is written"

// announceRemoval calls BeforeDelete before the first operation that takes anything away, unless an earlier request did.
func (r *run) announceRemoval(ctx context.Context, stage plan.Stage) error {
	if slices.ContainsFunc(stage.Operations, func(o plan.Operation) bool { return !isCheck(o) }) {
		return r.announce(ctx)
	}
	return nil
}

func (r *run) announce(ctx context.Context) error {
	if !r.task.Deleting || r.announced || r.task.BeforeDelete == nil || plan.Committed(r.in.Inventory) {
		return nil
	}
	if err := r.task.BeforeDelete(ctx); err != nil {
		return err
	}
	r.announced = true
	return nil
}

// unannounced ends a run whose deletion could not be announced. It is not under way yet, and so the next request announces it
// again.
func (r *run) unannounced(ctx context.Context, err error) error {
	r.report.Inventory = r.in.Inventory
	return errors.Join(err, r.save(ctx))
}

// carryOut carries out the stage of a plan and folds in what became of it. failed joins the errors of objects; err says that nothing
// was done.
func (r *run) carryOut(ctx context.Context, p plan.Plan) (failed, err error) {
	executor := &execute.Executor{
		Client:       r.Client,
		Guard:        r.Guard,
		Mark:         r.Mark,
		FieldManager: r.FieldManager,
		Reclaim:      r.Reclaim,
		Parallel:     r.Parallel,
		Deleting:     r.task.Deleting,
		Patterns:     r.task.Patterns,
		Objects:      r.objects,
		Records:      recordsByKey(p),
		Managed: func(key plan.Key) []metav1.ManagedFieldsEntry {
			return r.Observer.Managed(r.Component, key)
		},
	}
	r.ensureNamespaces(ctx, executor, p.Next)
	for i := range p.Next.Operations {
		if o := &p.Next.Operations[i]; o.Action == plan.ActionCreate {
			// From here on it may exist, whatever becomes of the answer.
			delete(r.Memory.fresh, o.Key)
		}
	}
	results, err := r.execute(ctx, executor, p.Next)
	if err != nil {
		return nil, err
	}
	r.report.Results = append(r.report.Results, results...)

	outcomes := make([]plan.Outcome, 0, len(results))
	var problems []error
	for i := range results {
		outcome, err := r.take(&results[i])
		outcomes = append(outcomes, outcome)
		if err != nil {
			problems = append(problems, err)
		}
		if results[i].Err == nil {
			if r.tried == nil {
				r.tried = make(map[operationKey]bool, len(results))
			}
			r.tried[keyOf(&results[i].Operation)] = true
		}
	}
	r.in.Inventory = plan.Fold(p.Inventory, outcomes, r.task.Now)
	r.report.Inventory = r.in.Inventory
	return errors.Join(problems...), nil
}

func recordsByKey(p plan.Plan) map[plan.Key]apis.InventoryRecord {
	wanted := make(map[plan.Key]bool, len(p.Next.Operations))
	for i := range p.Next.Operations {
		wanted[p.Next.Operations[i].Key] = true
	}
	records := make(map[plan.Key]apis.InventoryRecord, len(wanted))
	for i := range p.Inventory {
		if key := plan.KeyOf(p.Inventory[i]); wanted[key] {
			records[key] = p.Inventory[i]
		}
	}
	return records
}

func (r *run) interestIn(key plan.Key, version string) observe.Interest {
	interest, ok := r.known[key]
	if !ok {
		interest = observe.Interest{Key: key, Version: version}
		r.fill(&interest)
	}
	return interest
}

// ensureNamespaces makes the namespaces that objects of the stage need, each once.
func (r *run) ensureNamespaces(ctx context.Context, executor *execute.Executor, stage plan.Stage) {
	wanted := map[string]bool{}
	for i := range stage.Operations {
		if o := &stage.Operations[i]; o.Action == plan.ActionCreate && o.Key.Namespace != "" && !r.Memory.namespaces[o.Key.Namespace] {
			wanted[o.Key.Namespace] = true
		}
	}
	missing := slices.DeleteFunc(slices.Clone(r.task.Namespaces), func(name string) bool { return !wanted[name] })
	if len(missing) == 0 {
		return
	}
	// What cannot be made shows when an object is created in it, with a better error.
	problems := executor.EnsureNamespaces(ctx, missing)
	if r.Memory.namespaces == nil {
		r.Memory.namespaces = map[string]bool{}
	}
	for _, name := range missing {
		if problems[name] == nil {
			r.Memory.namespaces[name] = true
		}
	}
}
