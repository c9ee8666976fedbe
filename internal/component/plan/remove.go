package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
)

const (
	reasonUndesired   = "it is not desired any more"
	reasonRemoved     = "the component is being deleted"
	reasonDeleteAgain = "it was deleted, and is there again"
	reasonUse         = "others may use the types"
	titleCheck        = "who uses the types of the component"
)

// remove plans for a component that is to go.
func (m *maker) remove() {
	m.committed = Committed(m.in.Inventory)
	m.gather(nil)
	m.classify()
	for i := range m.items {
		m.undesired = append(m.undesired, &m.items[i])
	}
	if !m.committed && !m.permitted() {
		m.finish()
		return
	}
	m.committed = true
	for _, it := range m.undesired {
		it.forget()
		if !leavingComponent(it.record.Phase) {
			it.record.Phase, it.record.LastAppliedAt = apis.PhaseScheduledForDeletion, nil
		}
		m.assessRemoval(it, it.stays())
	}
	m.tally()
	m.release(m.undesired)
	m.turns()
	left := 0
	for _, it := range m.undesired {
		m.offer(it, rank{section: sectionRemove, wave: it.wave, stage: it.removalStage(), priority: int(it.kind.deletePriority)})
		if o, is := it.obstacle(); is {
			m.plan.Obstacles = append(m.plan.Obstacles, o)
		}
		if it.state != stateGone {
			left++
		}
	}
	m.plan.Done = left == 0
	m.finish()
}

// Committed tells whether the deletion of the component, whose inventory this is, has passed all checks, so that nothing stops it any
// more.
func Committed(inventory []apis.InventoryRecord) bool {
	return slices.ContainsFunc(inventory, func(r apis.InventoryRecord) bool {
		// What the component dropped before has no digest any more.
		return r.Digest != "" && leavingComponent(r.Phase)
	})
}

// stays tells whether the object outlives the component.
func (it *item) stays() bool {
	policy := it.record.DeletePolicy
	return policy == apis.DeleteOrphan || policy == apis.DeleteOrphanOnDelete
}

// permitted tells whether the component may be deleted: nobody else uses the types that would go with it. It asks for the checks
// that are missing.
func (m *maker) permitted() bool {
	var open bool
	next := &m.plan.Next
	verdict := func(o Operation, use Use) {
		failure, failed := m.in.Failed[o.Key]
		switch {
		case use.State == ForeignNone:
			return
		case use.State != ForeignUnchecked:
			m.plan.Obstacles = append(m.plan.Obstacles, Obstacle{Key: o.Key, Kind: ObstacleBlocked, Message: use.words()})
		case failed:
			m.plan.Obstacles = append(m.plan.Obstacles, Obstacle{Key: o.Key, Kind: ObstacleFailed, Message: failure})
		default:
			next.Operations = append(next.Operations, o)
		}
		open = true
	}
	staying := 0
	for _, it := range m.undesired {
		if it.stays() {
			staying++
			continue
		}
		s := &it.seen
		switch {
		case !it.defines() || it.record.IgnoreForeignInstances:
		case s.Presence == PresenceUnknown:
			m.plan.Obstacles = append(m.plan.Obstacles, Obstacle{Key: it.key, Kind: ObstacleWaiting, Message: messageUnseen})
			open = true
		case s.Presence == Present && s.Ownership == Ours && !s.Terminating:
			it.act(ActionCheck, reasonUse)
			verdict(it.operation(), m.in.Uses[it.key])
			it.state = stateDone
		}
	}
	// Types that nothing is taken away from are nobody's loss.
	if len(m.undesired) == 0 || staying < len(m.undesired) {
		asked := map[Pattern]bool{}
		for i, pattern := range m.in.Patterns {
			if asked[pattern] {
				continue
			}
			asked[pattern] = true
			key := Key{Group: pattern.Group, Kind: pattern.Kind}
			verdict(Operation{Action: ActionCheck, Key: key, Reason: reasonUse, Pattern: i}, m.in.PatternUses[i])
		}
	}
	if len(next.Operations) > 0 {
		next.Title = titleCheck
	}
	return !open
}

// forget drops the record of an object that is to go if it is gone, or not ours.
func (it *item) forget() {
	if s := &it.seen; s.Presence == Absent || s.Presence == Present && s.Ownership != Ours {
		it.state = stateGone
	}
}

// assessRemoval decides about an object that is to go, whether or not it is its turn. orphan: it is to stay in the cluster.
func (m *maker) assessRemoval(it *item, orphan bool) {
	r, s := it.record, &it.seen
	if it.state == stateGone {
		return
	}
	if s.Presence == PresenceUnknown {
		it.unseen = true
		if r.Phase == apis.PhaseDeleting {
			it.pause(messageLeaving)
		} else {
			it.pause(messageUnseen)
		}
		return
	}
	take(r, s)
	reason := reasonUndesired
	switch {
	case r.Phase == apis.PhaseDeleting:
		reason = reasonDeleteAgain
	case m.in.Deleting:
		reason = reasonRemoved
	}
	switch {
	case orphan:
		it.act(ActionOrphan, reason)
	case s.Terminating:
		it.wait(apis.ObjectTerminating, messageLeaving)
	case it.defines() && !r.IgnoreForeignInstances:
		m.assessType(it, reason)
	default:
		it.act(ActionDelete, reason)
	}
	it.fail()
}

// assessType decides about an object that defines types, and is to be deleted.
func (m *maker) assessType(it *item, reason string) {
	use := m.in.Uses[it.key]
	switch {
	case use.State == ForeignNone, use.State == ForeignUnchecked && m.committed:
		it.act(ActionDeleteType, reason)
	case use.State == ForeignUnchecked:
		it.act(ActionCheck, reasonUse)
	default:
		it.stand(stateBlocked, apis.ObjectTerminating, use.words())
	}
}

// words say who uses a type.
func (u Use) words() string {
	if u.State == ForeignUnknown {
		if u.Reason == "" {
			return "it is not known whether others use it"
		}
		return "it is not known whether others use it: " + u.Reason
	}
	named := strings.Join(u.Instances, ", ")
	switch {
	case named == "":
		return "in use by others"
	case u.More > 0:
		return fmt.Sprintf("in use by %s and %d more", named, u.More)
	case u.More < 0:
		return fmt.Sprintf("in use by %s and more", named)
	default:
		return "in use by " + named
	}
}

// tally counts what is left of each type and in each namespace, finds out the order in which all goes, and has types and
// namespaces wait for what they hold.
func (m *maker) tally() {
	for i := range m.items {
		if it := &m.items[i]; it.state != stateGone {
			it.kind.left++
			it.kind.unreleased++
			if it.space != nil {
				it.space.left++
				it.space.unreleased++
			}
		}
	}
	// An order that contradicts what holds what would have both wait for each other.
	for _, it := range m.undesired {
		it.order = it.record.DeleteOrder
		if it.state != stateGone {
			it.kind.order = max(it.kind.order, it.order)
		}
	}
	for _, it := range m.undesired {
		if it.defines() {
			for _, instances := range m.kinds.instances[it.position] {
				it.order = max(it.order, instances.order)
			}
		}
	}
	for _, it := range m.undesired {
		if it.space != nil && it.state != stateGone {
			it.space.order = max(it.space.order, it.order)
		}
	}
	for _, space := range m.spaces {
		space.item.order = max(space.item.order, space.order)
	}
	for _, it := range m.undesired {
		if !it.holder() || it.action == ActionOrphan || (it.state != stateAct && it.state != stateBlocked) {
			continue
		}
		if left, _ := m.contents(it); left > 0 {
			it.wait(it.record.Status, fmt.Sprintf("what depends on it has to go first: %d left", left))
		}
	}
}

// contents counts the records of what would go with the object: instances of its types, or what is in the namespace.
func (m *maker) contents(it *item) (left, unreleased int) {
	if it.kind.namespace {
		if space := m.spaces[it.key.Name]; space != nil {
			left, unreleased = space.left, space.unreleased
		}
	}
	for _, instances := range m.kinds.instances[it.position] {
		left += instances.left
		unreleased += instances.unreleased
		if instances == it.kind {
			left--
			if !it.released {
				unreleased--
			}
		}
	}
	return left, unreleased
}

// detained tells whether the object has to wait for something in it, or of its types, that may not go yet.
func (m *maker) detained(it *item) bool {
	if !it.holder() || it.state == stateAct && it.action == ActionOrphan {
		return false
	}
	_, unreleased := m.contents(it)
	return unreleased > 0
}

// turns holds what has to go after something else that is on its way out: what has a later delete order, and in the same wave
// what may serve instances of managed types that are still there. Only what is released counts; the rest goes when it may.
func (m *maker) turns() {
	var leaving []*item
	orders := map[int16]bool{}
	for _, it := range m.undesired {
		if it.state == stateGone {
			continue
		}
		if !it.released {
			it.hold()
			continue
		}
		orders[it.order] = true
		if m.detained(it) {
			it.hold()
			continue
		}
		if it.state != stateBlocked || m.in.Deleting {
			leaving = append(leaving, it)
		}
	}
	if len(leaving) == 0 {
		return
	}
	first := slices.MinFunc(leaving, func(a, b *item) int { return int(a.order) - int(b.order) }).order
	instances := slices.ContainsFunc(leaving, func(it *item) bool { return it.order == first && it.removalStage() == 0 })
	for _, it := range leaving {
		if it.order > first || instances && it.removalStage() > 0 {
			it.hold()
		}
	}
	if m.in.Deleting {
		m.count(first, len(orders))
	}
}

// count says how far the wave is in which objects are deleted.
func (m *maker) count(first int16, waves int) {
	progress := Progress{Wave: 1, Waves: waves}
	for _, it := range m.undesired {
		switch {
		case it.state == stateGone && it.order <= first:
			progress.Ready++
			progress.Total++
		case it.state != stateGone && it.order == first:
			progress.Total++
		}
	}
	m.plan.Progress = progress
}
