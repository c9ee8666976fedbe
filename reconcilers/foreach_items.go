package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/graph"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/stash"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemsMemory is what a loop remembers of the items of one resource from one request to the next.
type itemsMemory struct {
	byKey map[string]*itemMemory
	// recorded are the keys that the last request has recorded, and lost is how many requests in a row did not find
	// those of the one before.
	recorded []string
	lost     int
}

// itemMemory is what is remembered of one item.
type itemMemory struct {
	state resourcestate.State
	// conditions are those of the item as they were last.
	conditions []metav1.Condition
	// finished is true if the item has cleaned up after the resource was deleted.
	finished bool
}

func newItemsMemory() *itemsMemory { return &itemsMemory{byKey: map[string]*itemMemory{}} }

func (m *itemsMemory) of(key string) *itemMemory {
	known, ok := m.byKey[key]
	if !ok {
		known = &itemMemory{}
		m.byKey[key] = known
	}
	return known
}

func (m *itemsMemory) forget(key string) {
	if known, ok := m.byKey[key]; ok {
		known.state.Close()
		delete(m.byKey, key)
	}
}

// Evict implements [resourcestate.Evictor].
func (m *itemsMemory) Evict(now time.Time) (empty bool) {
	for _, known := range m.byKey {
		known.state.EndRequest(now)
	}
	return false
}

// Close implements io.Closer.
func (m *itemsMemory) Close() error {
	for key := range m.byKey {
		m.forget(key)
	}
	return nil
}

// withdrawal is the supervisor of an item that is gone.
type withdrawal struct {
	// outer is told too, if it also says Withdraw; it may be nil.
	outer Supervisor
	// left is true if objects of the item may be there.
	left atomic.Bool
}

var _ Supervisor = (*withdrawal)(nil)

func (w *withdrawal) Supervision() Supervision               { return Withdraw }
func (w *withdrawal) Suspend(client.Object) (bool, error)    { return false, nil }
func (w *withdrawal) SuspensionOf(client.Object) apis.Health { return apis.Health{} }
func (w *withdrawal) isLeft(object ObservedObject) bool {
	return object.Object != nil || object.Health != nil || object.Err != nil
}

func (w *withdrawal) Observe(object ObservedObject) {
	if w.isLeft(object) {
		w.left.Store(true)
	}
	if w.outer != nil && w.outer.Supervision() == Withdraw {
		w.outer.Observe(object)
	}
}

// itemsPass is one way through the items of a loop.
type itemsPass[Type client.Object, Item any] struct {
	*ForEach[Type, Item]
	ctx      context.Context
	resource Type
	items    []Item
	plan     itemPlan
	memory   *itemsMemory
	// types are those of the conditions that the nested nodes set.
	types       []string
	finalizers  []string
	cleansUp    bool
	terminating bool

	result Result
	errs   []error
	// conditions are those of the items, by type.
	conditions map[string][]itemCondition
	notReady   []apis.ItemStatus
	// done are the keys of the items that have cleaned up.
	done []string
	// needed are the finalizers that an item needs.
	needed []string
}

// reconcileItems runs the nested node for each item by its key.
func (r *ForEach[Type, Item]) reconcileItems(ctx context.Context, resource Type) (Result, error) {
	if statusfield.PartOf[apis.ItemsStatus](resource) == nil {
		return Result{}, Failed(Enter(ctx, r.Name), nil, r.errNoRecords(resource))
	}
	cleansUp := CleansUp(ctx, resource)
	var items []Item
	var err error
	if !IsItemGone(ctx) {
		// For an item that is gone, the function of the author could not tell.
		items, err = r.Items(Enter(ctx, r.Name), resource)
	}
	if err != nil && !cleansUp {
		recordUnlocated(Enter(ctx, r.Name), err)
		return Result{}, err
	}
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = r.Key(item)
	}
	nested := Describe(r.Reconciler)
	p := &itemsPass[Type, Item]{
		ForEach: r, ctx: ctx, resource: resource, items: items,
		plan:     planItems(r.Name, keys, r.recordOf(ctx, resource).Keys, cleansUp),
		memory:   r.memories.Of(ctx, resource, newItemsMemory),
		types:    conditionTypes(nested),
		cleansUp: cleansUp, terminating: resource.GetDeletionTimestamp() != nil,
		finalizers: nested.allFinalizers(), conditions: map[string][]itemCondition{},
	}
	return p.reconcile()
}

func (p *itemsPass[Type, Item]) reconcile() (Result, error) {
	for _, problem := range p.plan.problems {
		err := problem.err
		if len(p.types) > 0 {
			// A condition shows it, and only another spec helps.
			err = errors.Join(err, ErrDurable)
		}
		p.errs = append(p.errs, Failed(Enter(p.ctx, p.Name), nil, err))
		p.notReady = append(p.notReady, apis.ItemStatus{
			Key: problem.key, Status: metav1.ConditionFalse, Reason: reasonInvalidItem, Message: problem.err.Error(),
		})
	}
	outer := takeConditions(p.resource, p.types)
	for _, run := range p.plan.runs {
		p.reconcileItem(run)
	}
	putConditions(p.resource, outer)
	if err := p.clearFinalizers(); err != nil {
		p.errs = append(p.errs, err)
	}
	if p.cleansUp && len(p.done) < len(p.plan.runs) {
		NotDone(p.ctx)
	}
	p.report()
	p.record()
	return p.result, joinAll(p.errs...)
}

// reconcileItem runs the nested node for one item.
func (p *itemsPass[Type, Item]) reconcileItem(run keyedItem) {
	known := p.memory.of(run.key)
	cleansUp := p.cleansUp || run.isGone()
	if p.terminating && known.finished {
		p.done = append(p.done, run.key)
		return
	}
	it := newItem(itemOf(p.ctx), p.Name, run.key)
	it.state, it.gone = &known.state, it.gone || run.isGone()
	ctx, listed, withdrawn := p.enter(it, run, cleansUp)
	putConditions(p.resource, known.conditions)
	finalizers := p.resource.GetFinalizers()

	result, err := p.Reconciler.Reconcile(ctx, p.resource)

	showFinalizers(p.resource, finalizers, it.cleared)
	known.conditions = takeConditions(p.resource, p.types)
	p.result = aggregateResult(p.result, result)
	if err != nil {
		recordUnlocated(ctx, err)
		p.errs = append(p.errs, err)
	}
	finished := cleansUp && (err == nil || isOnlyHalt(err)) && !comesBack(result) &&
		!listed.notDone.Load() && (withdrawn == nil || !withdrawn.left.Load())
	switch {
	case finished:
		p.done = append(p.done, run.key)
		known.finished = p.terminating
	default:
		p.needed = append(p.needed, without(p.finalizers, it.cleared...)...)
	}
	p.note(run, it, known, err, finished)
}

// enter returns the context of an item. If the item cleans up, it also returns what is told that it is not done, and,
// unless the resource is terminating, its supervisor.
func (p *itemsPass[Type, Item]) enter(it *item, run keyedItem, cleansUp bool) (context.Context, *listRun, *withdrawal) {
	var listed *listRun
	var withdrawn *withdrawal
	ctx := stash.WithCopy(Enter(p.ctx, p.Name+"["+run.key+"]"))
	ctx = derive(ctx, func(s *treeContext) {
		s.item = it
		if cleansUp {
			listed = &listRun{plan: &graph.Plan{}, outer: s.list}
			s.list = listed
		}
	})
	if cleansUp && !p.terminating {
		withdrawn = &withdrawal{outer: SupervisorOf(ctx)}
		ctx = WithSupervisor(ctx, withdrawn)
	}
	cursor := Cursor[Item]{Index: run.index, Length: len(p.items)}
	if !run.isGone() {
		cursor.Item = p.items[run.index]
	}
	stash.StoreValue(ctx, p.key, cursor)
	return ctx, listed, withdrawn
}

// note notes how an item is.
func (p *itemsPass[Type, Item]) note(run keyedItem, it *item, known *itemMemory, err error, finished bool) {
	if p.terminating || finished {
		return
	}
	loud := err != nil && !isQuiet(err)
	switch {
	case run.isGone() || p.cleansUp:
		status := apis.ItemStatus{Key: run.key, Status: metav1.ConditionUnknown, Reason: "Withdrawing"}
		if loud {
			status.Status, status.Reason = metav1.ConditionFalse, string(Classify(err))
			status.Message = message.Stable(err.Error())
		}
		p.notReady = append(p.notReady, status)
		return
	}
	conditions := make([]metav1.Condition, 0, len(p.types))
	for _, conditionType := range p.types {
		one := p.conditionOf(conditionType, it, known, err)
		if one.key = run.key; one.condition != nil {
			one.condition.Type = conditionType
			conditions = append(conditions, *one.condition)
		}
		p.conditions[conditionType] = append(p.conditions[conditionType], one)
	}
	worst, bad := worstOf(run.key, p.types, conditions)
	if loud && worst.Status != metav1.ConditionFalse {
		worst, bad = apis.ItemStatus{
			Key: run.key, Status: metav1.ConditionFalse, Reason: string(Classify(err)),
			Message: message.Stable(err.Error()),
		}, true
	}
	if bad {
		p.notReady = append(p.notReady, worst)
	}
}

// conditionOf returns what is known of a condition of an item after the nested node returned err.
func (p *itemsPass[Type, Item]) conditionOf(
	conditionType string, it *item, known *itemMemory, err error,
) itemCondition {
	state := unset{generation: p.resource.GetGeneration(), waiting: waitingFor(err, contextOf(p.ctx).state.locate)}
	state.needed, state.known = it.conditions.Of(conditionType)
	state.condition = meta.FindStatusCondition(known.conditions, conditionType)
	if !state.known && state.condition == nil && state.waiting == "" && err != nil {
		return itemCondition{missing: true}
	}
	if condition, ok := state.decide(); ok {
		return itemCondition{condition: &condition}
	}
	return itemCondition{condition: state.condition.DeepCopy()}
}

// clearFinalizers removes the finalizers that no item needs.
func (p *itemsPass[Type, Item]) clearFinalizers() error {
	if len(p.plan.problems) > 0 {
		return nil
	}
	for _, finalizer := range p.finalizers {
		if slices.Contains(p.needed, finalizer) {
			continue
		}
		if err := ClearFinalizer(p.ctx, p.resource, finalizer); err != nil {
			return err
		}
	}
	return nil
}

// report sets the conditions that stand for those of all items.
func (p *itemsPass[Type, Item]) report() {
	if p.terminating {
		return
	}
	for _, conditionType := range p.types {
		items := p.conditions[conditionType]
		for _, key := range p.plan.fresh {
			items = append(items, itemCondition{key: key, condition: &metav1.Condition{
				Status: metav1.ConditionUnknown, Reason: reasonInitializing,
			}})
		}
		for _, problem := range p.plan.problems {
			items = append(items, itemCondition{key: problem.key, condition: problem.condition()})
		}
		switch sum, known := sumOfItems(items); {
		case !known:
		case sum == nil:
			NotNeeded(p.ctx, p.resource, conditionType)
		default:
			sum.Type = conditionType
			p.reporter.Report(p.ctx, p.resource, *sum)
		}
	}
}

// itemText is the key of the text that is recorded of an item.
type itemText struct{ name, key string }

// maxLostItems is how many requests in a row do not find recorded keys until it is known that they are not kept.
const maxLostItems = 3

// record stores the keys of the items, and which items are not as they should be.
func (p *itemsPass[Type, Item]) record() {
	if p.terminating {
		return
	}
	before := p.recordOf(p.ctx, p.resource)
	next := apis.ForEachStatus{Name: before.Name, NotReadyCount: int32(len(p.notReady))}
	for _, run := range p.plan.runs {
		if slices.Contains(p.done, run.key) {
			p.memory.forget(run.key)
		} else {
			next.Keys = append(next.Keys, run.key)
		}
	}
	for _, key := range p.plan.kept {
		if slices.Contains(before.Keys, key) {
			next.Keys = append(next.Keys, key)
		}
	}
	next.Keys = append(next.Keys, p.plan.fresh...)
	slices.Sort(next.Keys)
	next.NotReady = worstFirst(p.notReady)
	for i := range next.NotReady {
		item := &next.NotReady[i]
		var shown *string
		for _, was := range before.NotReady {
			if text := was.Message; was.Key == item.Key && was.Status == item.Status && was.Reason == item.Reason {
				shown = &text
			}
		}
		item.Message = p.reporter.Text(p.ctx, p.resource, itemText{before.Name, item.Key}, shown, item.Message)
	}
	setItemRecord(statusfield.PartOf[apis.ItemsStatus](p.resource), next)

	if p.memory.lost++; !slices.ContainsFunc(p.plan.fresh, func(key string) bool {
		return slices.Contains(p.memory.recorded, key)
	}) {
		p.memory.lost = 0
	}
	p.memory.recorded = p.plan.fresh
	if p.memory.lost >= maxLostItems {
		p.errs = append(p.errs, Failed(Enter(p.ctx, p.Name), nil, fmt.Errorf("the status of %T does not keep the keys "+
			"of items: its CustomResourceDefinition must define status.forEach", p.resource)))
	}
	if len(p.plan.fresh) > 0 {
		p.awaitRecord()
		// The write of the status brings the resource back, as a rule.
		p.result = aggregateResult(p.result, Result{RequeueAfter: time.Second})
	}
}

// awaitRecord says that nothing exists yet for items whose keys are recorded now.
func (p *itemsPass[Type, Item]) awaitRecord() {
	NotDone(p.ctx)
	if outer := SupervisorOf(p.ctx); outer != nil {
		outer.Observe(ObservedObject{Node: RetrievePath(Enter(p.ctx, p.Name)), Health: &apis.Health{
			State: apis.StateUnknown, Message: "the keys of new items are recorded first",
		}})
	}
}

// recordOf returns the record of the loop, as it is in the cluster.
func (r *ForEach[Type, Item]) recordOf(ctx context.Context, resource Type) apis.ForEachStatus {
	name := ItemName(ctx, r.Name)
	status := statusfield.PartOf[apis.ItemsStatus](resource)
	if s := contextOf(ctx).state; s != nil && s.stored != nil {
		status = cmp.Or(statusfield.PartOf[apis.ItemsStatus](s.stored), status)
	}
	if status != nil {
		for _, record := range status.ForEach {
			if record.Name == name {
				return record
			}
		}
	}
	return apis.ForEachStatus{Name: name}
}

// setItemRecord stores the record of a loop, and removes one that has nothing. Records are sorted by name.
func setItemRecord(status *apis.ItemsStatus, record apis.ForEachStatus) {
	at, found := slices.BinarySearchFunc(status.ForEach, record.Name, func(r apis.ForEachStatus, name string) int {
		return strings.Compare(r.Name, name)
	})
	// The slice may be shared with what the status was before.
	switch empty := len(record.Keys) == 0 && record.NotReadyCount == 0; {
	case found && equality.Semantic.DeepEqual(status.ForEach[at], record):
	case found && empty:
		status.ForEach = slices.Delete(slices.Clone(status.ForEach), at, at+1)
	case found:
		status.ForEach = slices.Clone(status.ForEach)
		status.ForEach[at] = record
	case !empty:
		status.ForEach = slices.Insert(slices.Clone(status.ForEach), at, record)
	}
}

func (r *ForEach[Type, Item]) errNoRecords(resource client.Object) error {
	return fmt.Errorf("ForEach %q finds no apis.ItemsStatus in the status of %T: "+
		"embed apis.ItemsStatus in the type of its field Status, since Key is set", r.Name, resource)
}

// takeConditions removes the conditions of some types from the status of resource, and returns them.
func takeConditions(resource client.Object, types []string) []metav1.Condition {
	status := statusfield.Of(resource)
	var taken, others []metav1.Condition
	for _, condition := range status.GetConditions() {
		if slices.Contains(types, condition.Type) {
			taken = append(taken, condition)
		} else {
			others = append(others, condition)
		}
	}
	if len(taken) > 0 {
		status.SetConditions(others)
	}
	return taken
}

// putConditions adds conditions to the status of resource, which has none of their types.
func putConditions(resource client.Object, conditions []metav1.Condition) {
	if len(conditions) == 0 {
		return
	}
	status := statusfield.Of(resource)
	all := slices.Concat(status.GetConditions(), conditions)
	slices.SortFunc(all, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	status.SetConditions(all)
}

// showFinalizers gives resource back the finalizers that were cleared for an item, in the order that they had before.
func showFinalizers(resource client.Object, before, cleared []string) {
	if len(cleared) == 0 {
		return
	}
	now := resource.GetFinalizers()
	shown := slices.DeleteFunc(slices.Clone(before), func(name string) bool {
		return !slices.Contains(now, name) && !slices.Contains(cleared, name)
	})
	resource.SetFinalizers(append(shown, without(now, before...)...))
}
