package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// Make decides what is to be done next.
func Make(in Input) Plan {
	return build(&in).plan
}

// build makes a plan, and returns all that was worked out for it.
func build(in *Input) *builder {
	b := &builder{in: in, plan: Plan{Deleting: in.Deleting, Recheck: in.Recheck}}
	switch {
	case in.Deleting:
		b.remove()
	case in.isEmpty() && !in.AllowEmpty:
		b.hold()
	default:
		b.apply()
	}
	return b
}

// hold leaves all objects and records as they are.
func (b *builder) hold() {
	b.match(nil)
	b.plan.Empty, b.plan.Inventory = true, b.records
}

// isEmpty reports whether no object is desired, to be absent or only read, although the component has some. An input
// that could not be read looks like that.
func (in *Input) isEmpty() bool {
	exists := func(r apis.InventoryRecord) bool { return r.Phase != apis.PhaseCompleted }
	return len(in.Desired) == 0 && len(in.Leaving) == 0 && slices.ContainsFunc(in.Inventory, exists)
}

// builder makes one plan.
type builder struct {
	in   *Input
	plan Plan

	// records and items are parallel. The records of the inventory come first, in its order. New ones follow, in the
	// order of Input.Desired.
	records []apis.InventoryRecord
	items   []item
	// positions are the indexes of the items.
	positions map[Key]int32
	// desired are the items with a desired object, and undesired all others, in the order of the inventory.
	desired, undesired []*item

	kinds *kindSet
	// namespaces are the items that are namespaces, by name.
	namespaces map[string]*item
	waves      []wave
	// next is the rank of the operations in plan.Next.
	next rank
}

// state is what a plan makes of an object.
type state int8

const (
	// stateDone means that there is nothing to do, and nothing to wait for.
	stateDone state = iota
	// stateAct means that the action may be done now.
	stateAct
	// stateHeld means that the action has to wait for others.
	stateHeld
	// The next five are obstacles.
	stateWaiting
	stateFailed
	stateContested
	stateBlocked
	stateNotOurs
	// stateGone means that the record is dropped.
	stateGone
)

// item is what the plan works out about one record.
type item struct {
	key    Key
	record *apis.InventoryRecord
	// desired is nil for an object that is to be deleted or orphaned.
	desired  *Desired
	observed Observed
	kind     *kind
	// namespace is the item of the namespace that the object is in, nil if the component does not have it.
	namespace *item
	// inside counts the objects in the namespace that this item is; nil for other kinds.
	inside *contents
	// wave is the index of the wave in which a desired object is written.
	wave int
	// position is the index of the item.
	position int32
	// order is the delete order that counts: the one of the record, or a later one if its contents are deleted later.
	order int16

	state state
	// failed reports whether an operation on it failed in this request, and failure says why.
	failed  bool
	failure string
	action  Action
	reason  string
	message string
	// unwritten reports whether the desired state was never written. It is written when its wave is open, whereas drift
	// is corrected at once.
	unwritten bool
	// volatile reports whether the object is not ready, and no wave waits for it.
	volatile bool
	// aliased reports whether it may be the same object as a desired one that was not found under its own key.
	aliased bool
	// deletable reports whether the waves of the desired objects allow its deletion, kept whether it waits for an
	// object that is not written or not ready.
	deletable, kept bool
	// released reports whether it goes at once, because it keeps a desired object from being written.
	released bool
}

func (it *item) setAction(action Action, reason string) {
	it.state, it.action, it.reason = stateAct, action, reason
}

// setState sets the state of the item, and the status and message of its record.
func (it *item) setState(s state, status apis.ObjectStatus, text string) {
	it.state, it.message = s, text
	it.record.Status, it.record.Message = status, recordMessage(text)
}

// waitForObservation leaves the record alone: it has what was known last, and that did not change because we begin to
// look.
func (it *item) waitForObservation(message string) {
	it.state, it.message = stateWaiting, message
}

// hold puts off the action of the item.
func (it *item) hold() {
	if it.state == stateAct {
		it.state = stateHeld
	}
}

// dropFailed drops the action of the item if it failed before. The next request tries again.
func (it *item) dropFailed() {
	if it.state == stateAct && it.failed {
		it.setState(stateFailed, it.record.Status, it.failure)
	}
}

// definesTypes reports whether the object makes the API server serve other types.
func (it *item) definesTypes() bool {
	return it.kind.definesTypes || len(it.record.ManagedTypes) > 0
}

// deletesInstances reports whether the deletion of the object deletes instances. The server behind an APIService keeps
// them.
func (it *item) deletesInstances() bool {
	return it.definesTypes() && !it.kind.isAPIService
}

// isContainer reports whether the deletion of the object deletes others: objects in a namespace, or instances of a
// type.
func (it *item) isContainer() bool {
	return it.kind.isNamespace || it.definesTypes()
}

// match makes the items: it finds the desired object, the record and the observation of each key. If a key is there
// twice, the first one counts.
func (b *builder) match(desired []Desired) {
	recorded := b.in.Inventory
	b.positions = make(map[Key]int32, max(len(recorded), len(desired)))
	// Each item comes from the record, or else from the desired object, with this index.
	sources := make([]int32, 0, max(len(recorded), len(desired)))
	positionOf := func(key Key, source int) int32 {
		position, known := b.positions[key]
		if !known {
			position = int32(len(sources))
			b.positions[key] = position
			sources = append(sources, int32(source))
		}
		return position
	}
	for i := range recorded {
		positionOf(KeyOf(recorded[i]), i)
	}
	known := len(sources)
	matches := make([]int32, len(desired))
	for i := range desired {
		matches[i] = positionOf(desired[i].Key, i)
	}

	b.records = make([]apis.InventoryRecord, len(sources))
	b.items = make([]item, len(sources))
	for i, source := range sources {
		it := &b.items[i]
		it.position, it.record = int32(i), &b.records[i]
		if i < known {
			*it.record = recorded[source]
			it.key = KeyOf(*it.record)
		} else {
			it.key = desired[source].Key
		}
		it.see(b.in)
	}
	b.desired = make([]*item, 0, len(desired))
	for i, position := range matches {
		if it := &b.items[position]; it.desired == nil {
			it.desired = &desired[i]
			b.desired = append(b.desired, it)
		}
	}
}

// see takes what was observed of the object, and what failed, from the input.
func (it *item) see(in *Input) {
	it.observed = in.Observed[it.key]
	if it.observed.Presence == Present && it.observed.UID == "" {
		// An operation has to name the UID of the object.
		it.observed = Observed{}
	}
	if kinds.IsCreateOnly(it.key.GroupKind()) {
		it.observed = Observed{Presence: Absent}
	}
	if len(in.Failed) > 0 {
		it.failure, it.failed = in.Failed[it.key]
	}
}

// resolveKinds finds the kind and the namespace of each item. It needs records that are up to date. Types that a
// dropped record defines do not count.
func (b *builder) resolveKinds() {
	b.kinds = newKindSet()
	for _, p := range b.in.Patterns {
		b.kinds.matcher.add(apis.ManagedType{Group: p.Group, Version: "*", Kind: p.Kind}, byPattern)
	}
	for i := range b.items {
		if b.items[i].state == stateGone {
			continue
		}
		for _, t := range b.records[i].ManagedTypes {
			b.kinds.matcher.add(t, int32(i))
		}
	}
	for i := range b.items {
		it := &b.items[i]
		it.kind = b.kinds.of(it.record)
		if it.kind.isNamespace && it.state != stateGone {
			if b.namespaces == nil {
				b.namespaces = map[string]*item{}
			}
			b.namespaces[it.key.Name] = it
			it.inside = b.kinds.addContents(it.position, &contents{order: math.MinInt16})
		}
	}
	if len(b.namespaces) == 0 {
		return
	}
	for i := range b.items {
		if it := &b.items[i]; it.key.Namespace != "" {
			it.namespace = b.namespaces[it.key.Namespace]
		}
	}
}

// rank says which operations come first. Operations of the same rank may run at the same time.
type rank struct {
	section, wave, stage, priority int
}

// The sections of a plan. What may be done now may be done in any order; but an object that is in the way of another
// one goes first.
const (
	sectionRemove = iota
	sectionPurge
	sectionWrite
)

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.section, other.section), cmp.Compare(r.wave, other.wave),
		cmp.Compare(r.stage, other.stage), cmp.Compare(r.priority, other.priority))
}

func (b *builder) rankOf(it *item) rank {
	switch {
	case it.desired == nil:
		return rank{section: sectionRemove, stage: it.removalStage(), priority: int(it.kind.deletePriority)}
	case isPurging(it.record.Phase):
		return rank{section: sectionPurge, wave: b.purgeWave(it), priority: int(it.kind.deletePriority)}
	default:
		return rank{section: sectionWrite, wave: it.wave, stage: it.stage(), priority: int(it.kind.applyPriority)}
	}
}

// propose puts the action of the item into the next stage, unless the stage has operations that come before it.
func (b *builder) propose(it *item) {
	if it.state != stateAct {
		return
	}
	next, r := &b.plan.Next, b.rankOf(it)
	order := r.compare(b.next)
	if len(next.Operations) == 0 || order < 0 {
		b.next, next.Operations = r, append(next.Operations[:0], it.operation(b.in))
	} else if order == 0 {
		next.Operations = append(next.Operations, it.operation(b.in))
	}
}

func (it *item) operation(in *Input) Operation {
	o := Operation{
		Action: it.action, Reason: it.reason, Key: it.key, Version: it.record.Version, UID: it.observed.UID,
		Pattern: -1, Undoes: it.undoes(),
	}
	switch it.action {
	case ActionCreate:
		o.UID = ""
		fallthrough
	case ActionAdopt, ActionRelabel, ActionApply, ActionReplace:
		o.Override = it.action != ActionCreate && it.desired.UpdatePolicy == apis.UpdateApplyOverride
		o.Stamp = it.desired.ReapplyInterval > 0 && it.desired.Digest != DigestOnce
	case ActionDelete:
		if in.Deleting {
			o.ResourceVersion = it.observed.ResourceVersion
		} else if it.released {
			o.ResourceVersion, o.Exact = in.Released[it.key], true
		}
	default:
	}
	return o
}

// finish fills in the plan from the states of all items.
func (b *builder) finish() {
	b.plan.Done = true
	b.collect(b.desired)
	b.collect(b.undesired)
	if len(b.plan.Next.Operations) > 0 {
		b.plan.Next.Title, b.plan.Next.Wave = b.title(), b.waveName()
	}
	b.plan.Inventory = b.inventory()
}

// isDispensable reports whether the object is not as desired, and the component does without it.
func (it *item) isDispensable() bool {
	return it.desired != nil && it.desired.Auxiliary && obstacleKinds[it.state] != ""
}

// isLeft reports whether the component is not done because of the object.
func (it *item) isLeft() bool {
	return it.state != stateDone && it.state != stateGone && !it.isDispensable()
}

// collect puts the operations and the obstacles of items into the plan.
func (b *builder) collect(items []*item) {
	for _, it := range items {
		b.propose(it)
		if kind := obstacleKinds[it.state]; kind != "" {
			b.plan.Obstacles = append(b.plan.Obstacles, Obstacle{
				Key: it.key, Kind: kind, Message: it.message, Auxiliary: it.isDispensable(), Kept: it.kept,
			})
		}
		if it.isLeft() {
			b.plan.Done = false
		}
	}
}

var obstacleKinds = [...]ObstacleKind{
	stateWaiting:   ObstacleWaiting,
	stateFailed:    ObstacleFailed,
	stateContested: ObstacleContested,
	stateBlocked:   ObstacleBlocked,
	stateNotOurs:   ObstacleNotOurs,
	stateGone:      "",
}

// title says what the next stage is about.
func (b *builder) title() string {
	switch {
	case b.in.Deleting:
		return fmt.Sprintf("deletion, wave %d of %d", b.plan.Progress.Wave, b.plan.Progress.Waves)
	case b.next.section == sectionRemove:
		return "objects that are not desired any more"
	case b.next.section == sectionPurge:
		return fmt.Sprintf("purge after wave %d of %d", b.next.wave+1, len(b.waves))
	default:
		names := [...]string{"", ", aggregated APIs", ", instances of managed types"}
		return b.waveName() + names[b.next.stage]
	}
}

// waveName names the wave of the next operations if they apply objects, and is empty otherwise.
func (b *builder) waveName() string {
	if b.in.Deleting || b.next.section == sectionRemove || b.next.section == sectionPurge {
		return ""
	}
	return fmt.Sprintf("wave %d of %d", b.next.wave+1, len(b.waves))
}

// inventory returns the records that stay, in canonical order for deletion.
func (b *builder) inventory() []apis.InventoryRecord {
	places := make([]place, 0, len(b.items))
	for i := range b.items {
		it := &b.items[i]
		if it.state != stateGone && !it.observed.Misplaced && (it.desired == nil || !it.desired.ReadOnly) {
			places = append(places, placeOf(b.records[i].DeleteOrder, b.items[i].kind.deletePriority, i))
		}
	}
	return inOrder(b.records, places)
}
