package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/graph"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/stash"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	if err := r.checkStash(ctx); err != nil {
		return Result{}, err
	}
	ctx = withState(ctx)
	defer r.memories.End(ctx)
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
	r.nestedOnce.Do(func() {
		nested := Describe(r.Reconciler)
		r.nestedTypes, r.nestedFinalizers = conditionTypes(nested), nested.allFinalizers()
	})
	p := &itemsPass[Type, Item]{
		ForEach: r, ctx: ctx, resource: resource, items: items,
		plan:     planItems(r.Name, keys, r.recordOf(ctx, resource).Keys, cleansUp),
		memory:   r.memories.Of(ctx, newItemsMemory),
		types:    r.nestedTypes,
		cleansUp: cleansUp, terminating: resource.GetDeletionTimestamp() != nil,
		finalizers: r.nestedFinalizers, conditions: map[string][]itemCondition{},
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

	result, err := ReconcileNested(ctx, p.Reconciler, p.resource)

	showFinalizers(p.resource, finalizers, it.cleared)
	known.conditions = takeConditions(p.resource, p.types)
	p.result = aggregateResult(p.result, result)
	if err != nil {
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
	ctx := stash.WithCopy(enterPlace(p.ctx, p.Name+"["+run.key+"]", placeItem))
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
			ReportCondition(p.ctx, p.resource, *sum)
		}
	}
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
