package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

const (
	reasonUndesired   = "it is not desired any more"
	reasonRemoved     = "the component is being deleted"
	reasonDeleteAgain = "it was deleted, and exists again"
	reasonUse         = "others may use the types"
	titleCheck        = "checks before the deletion"
	messageUnmarked   = "its owner label was removed"

	messageFenced = "no instance can be created any more, and creations that began before get time to end"
)

// remove plans for a component that is being deleted.
func (b *builder) remove() {
	b.match(nil)
	b.resolveKinds()
	for i := range b.items {
		if b.in.Orphan {
			b.items[i].record.DeletePolicy = apis.DeleteOrphan
		}
		b.undesired = append(b.undesired, &b.items[i])
	}
	if !Committed(b.in.Inventory) && !b.checksPassed() {
		b.plan.Inventory = b.inventory()
		return
	}
	for _, it := range b.undesired {
		b.dropUnlessOurs(it)
		if !isLeaving(it.record.Phase) {
			it.record.Phase, it.record.LastAppliedAt = apis.PhaseScheduledForDeletion, nil
		}
	}
	b.assessRemovals(apis.DeleteOrphanOnDelete)
	allowDeletion(b.undesired)
	b.sequenceDeletions()
	b.finish()
}

// Committed reports whether the deletion of the component with this inventory has passed all checks. Nothing stops it
// then.
func Committed(inventory []apis.InventoryRecord) bool {
	return slices.ContainsFunc(inventory, func(r apis.InventoryRecord) bool {
		// Objects that were pruned have no digest.
		return r.Digest != "" && isLeaving(r.Phase)
	})
}

// checksPassed reports whether the component may be deleted: no others use the types that are deleted with it. It
// plans the checks that are missing.
func (b *builder) checksPassed() bool {
	next, obstacles := &b.plan.Next, &b.plan.Obstacles
	// Nothing begins before the margins of all fences are over.
	var until time.Time
	check := func(o Operation, use Use) {
		failure, failed := b.in.Failed[o.Key]
		switch {
		case use.State == ForeignNone:
		case use.State == ForeignFenced:
			if use.Until.After(until) {
				until = use.Until
			}
			*obstacles = append(*obstacles, Obstacle{Key: o.Key, Kind: ObstacleWaiting, Message: messageFenced})
		case use.State != ForeignUnchecked:
			*obstacles = append(*obstacles, Obstacle{Key: o.Key, Kind: ObstacleBlocked, Message: use.words()})
		case failed:
			*obstacles = append(*obstacles, Obstacle{Key: o.Key, Kind: ObstacleFailed, Message: failure})
		default:
			next.Operations = append(next.Operations, o)
		}
	}
	orphans := 0
	for _, it := range b.undesired {
		switch r, o := it.record, &it.observed; {
		case r.DeletePolicy == apis.DeleteOrphan || r.DeletePolicy == apis.DeleteOrphanOnDelete:
			orphans++
		case !it.deletesInstances() || r.IgnoreForeignInstances || o.IgnoreForeignInstances:
		case o.Presence == PresenceUnknown:
			*obstacles = append(*obstacles, Obstacle{Key: it.key, Kind: ObstacleWaiting, Message: messageUnobserved})
		case o.Presence == Present && o.Ownership == Ours && !o.Terminating:
			check(Operation{
				Action: ActionCheck, Key: it.key, Version: r.Version, UID: o.UID, Reason: reasonUse, Pattern: -1,
			}, b.in.Uses[it.key])
		}
	}
	// If all objects are orphaned, the types lose none of their servers.
	if len(b.undesired) == 0 || orphans < len(b.undesired) {
		asked := map[Pattern]bool{}
		for i, pattern := range b.in.Patterns {
			if asked[pattern] {
				continue
			}
			asked[pattern] = true
			key := Key{Group: pattern.Group, Kind: pattern.Kind}
			check(Operation{Action: ActionCheck, Key: key, Reason: reasonUse, Pattern: i}, b.in.PatternUses[i])
		}
	}
	// What blocks already decides. The rest need not be checked.
	if slices.ContainsFunc(*obstacles, func(o Obstacle) bool { return o.Kind == ObstacleBlocked }) {
		next.Operations = nil
	}
	if len(next.Operations) > 0 {
		next.Title = titleCheck
	}
	b.plan.Recheck = earlier(b.plan.Recheck, until)
	return len(next.Operations) == 0 && len(*obstacles) == 0
}

// dropUnlessOurs drops the record of an object that is gone, or not ours. One that was ours is left.
func (b *builder) dropUnlessOurs(it *item) {
	o, orphans := &it.observed, apis.DeleteOrphanOnApply
	if b.in.Deleting {
		orphans = apis.DeleteOrphanOnDelete
	}
	if o.Presence != Absent && (o.Presence != Present || o.Ownership == Ours) {
		return
	}
	it.state = stateGone
	policy := it.record.DeletePolicy
	isSame := func(other *item) bool { return other.observed.UID == o.UID }
	if o.Presence == Absent || it.record.UID != o.UID || policy == apis.DeleteOrphan || policy == orphans ||
		slices.ContainsFunc(b.desired, isSame) {
		return
	}
	text := messageUnmarked
	if o.Ownership == Foreign || o.Ownership == Predecessor {
		text = "it " + o.Claim
	}
	b.plan.Left = append(b.plan.Left, Obstacle{Key: it.key, Kind: ObstacleNotOurs, Message: text})
}

// assessRemovals decides what each undesired object needs, as if none had to wait for another. Objects are orphaned
// by the delete policy Orphan, and by the given one.
func (b *builder) assessRemovals(orphans apis.DeletePolicy) {
	for _, it := range b.undesired {
		if it.state != stateGone {
			policy := it.record.DeletePolicy
			b.assessRemoval(it, policy == apis.DeleteOrphan || policy == orphans)
		}
	}
	b.countContents()
	for _, it := range b.undesired {
		if it.action == ActionOrphan || (it.state != stateAct && it.state != stateBlocked) {
			continue
		}
		if left, _ := b.contentsOf(it); left > 0 {
			text := fmt.Sprintf("what depends on it has to go first: %d left", left)
			it.setState(stateWaiting, it.record.Status, text)
		}
	}
}

func (b *builder) assessRemoval(it *item, orphan bool) {
	r, o := it.record, &it.observed
	if o.Presence == PresenceUnknown {
		if r.Phase == apis.PhaseDeleting {
			it.waitForObservation(messageTerminating)
		} else {
			it.waitForObservation(messageUnobserved)
		}
		return
	}
	recordUID(r, o)
	reason := reasonUndesired
	switch {
	case r.Phase == apis.PhaseDeleting:
		reason = reasonDeleteAgain
	case b.in.Deleting:
		reason = reasonRemoved
	}
	use := b.in.Uses[it.key]
	switch {
	case orphan:
		it.setAction(ActionOrphan, reason)
	case o.Terminating:
		it.setState(stateWaiting, apis.ObjectTerminating, it.observed.deletion())
	case !it.deletesInstances() && !it.kind.isNamespace || r.IgnoreForeignInstances:
		it.setAction(ActionDelete, reason)
	case !it.definesTypes() && (use.State == ForeignUnchecked || use.State == ForeignNone):
		it.setAction(ActionDeleteNamespace, reason)
	case use.State == ForeignNone || o.IgnoreForeignInstances || use.State == ForeignUnchecked && b.in.Deleting:
		it.setAction(ActionDeleteType, reason)
	case use.State == ForeignUnchecked:
		it.setAction(ActionCheck, reasonUse)
	case use.State == ForeignFenced:
		b.plan.Recheck = earlier(b.plan.Recheck, use.Until)
		it.setState(stateWaiting, apis.ObjectTerminating, messageFenced)
	default:
		it.setState(stateBlocked, apis.ObjectTerminating, use.words())
	}
	it.dropFailed()
}

// words say who uses a type or a namespace.
func (u Use) words() string {
	if u.State == ForeignFenced {
		return messageFenced
	}
	text := "in use by others"
	switch instances := strings.Join(u.Instances, ", "); {
	case u.State == ForeignUnknown:
		text = "it is not known whether others use it"
		if u.Reason != "" {
			text += ": " + u.Reason
		}
	case instances == "":
	case u.More > 0:
		text = fmt.Sprintf("in use by %s and %d more", instances, u.More)
	case u.More < 0:
		text = fmt.Sprintf("in use by %s and more", instances)
	default:
		text = "in use by " + instances
	}
	if u.State == ForeignBlocking && u.Reason != "" {
		text += "; " + u.Reason
	}
	return text
}

// countedIn returns the contents that count the object.
func (it *item) countedIn() []*contents {
	if it.namespace == nil {
		return []*contents{&it.kind.instances}
	}
	return []*contents{&it.kind.instances, it.namespace.inside}
}

// countContents counts the instances of each type and the objects in each namespace. It also finds the delete orders
// that are in force: a container goes no earlier than its contents, or each would wait for the other.
func (b *builder) countContents() {
	for i := range b.items {
		if it := &b.items[i]; it.state != stateGone {
			for _, c := range it.countedIn() {
				c.left++
				c.retained++
			}
		}
	}
	// Objects that define types may be in a namespace, so their orders come first.
	for _, it := range b.undesired {
		it.order = it.record.DeleteOrder
		if it.state != stateGone {
			it.kind.instances.order = max(it.kind.instances.order, it.order)
		}
	}
	for _, it := range b.undesired {
		for _, c := range b.kinds.contents[it.position] {
			it.order = max(it.order, c.order)
		}
	}
	for _, it := range b.undesired {
		if it.namespace != nil && it.state != stateGone {
			it.namespace.inside.order = max(it.namespace.inside.order, it.order)
		}
	}
	for _, it := range b.namespaces {
		it.order = max(it.order, it.inside.order)
	}
}

// contentsOf counts the objects that would be deleted with the object. It does not wait for itself.
func (b *builder) contentsOf(it *item) (left, retained int) {
	for _, c := range b.kinds.contents[it.position] {
		left += c.left
		retained += c.retained
		if c == &it.kind.instances {
			left--
		}
	}
	return left, retained
}

// hasRetainedContents reports whether an object that may be deleted has to wait for contents that may not be deleted
// yet.
func (b *builder) hasRetainedContents(it *item) bool {
	_, retained := b.contentsOf(it)
	return retained > 0 && !(it.state == stateAct && it.action == ActionOrphan)
}

// sequenceDeletions holds the objects that have to go after another one, except for released ones: those with a later
// delete order, and in the same wave the objects that may serve webhooks or instances of managed types, as long as
// there are such. Objects that may not be deleted yet hold no others, and neither does a namespace in which others have
// objects: nothing shows that these need what is left of the component.
func (b *builder) sequenceDeletions() {
	var leaving []*item
	orders := map[int16]bool{}
	for _, it := range b.undesired {
		if it.state == stateGone || it.released {
			continue
		}
		if it.deletable {
			orders[it.order] = true
		}
		if !it.deletable || b.hasRetainedContents(it) {
			it.hold()
		} else if it.state != stateBlocked || b.in.Deleting && it.definesTypes() {
			leaving = append(leaving, it)
		}
	}
	if len(leaving) == 0 {
		return
	}
	first := slices.MinFunc(leaving, func(a, b *item) int { return int(a.order) - int(b.order) }).order
	instances := slices.ContainsFunc(leaving, func(it *item) bool {
		return it.order == first && it.removalStage() == 0
	})
	for _, it := range leaving {
		if it.order > first || instances && it.removalStage() > 0 {
			it.hold()
		}
	}
	if !b.in.Deleting {
		return
	}
	progress := Progress{Wave: 1, Waves: len(orders)}
	for _, it := range b.undesired {
		if it.state == stateGone && it.order <= first {
			progress.Ready++
		} else if it.state != stateGone && it.order == first {
			progress.Total++
		}
	}
	progress.Total += progress.Ready
	b.plan.Progress = progress
}

// removalStage is the part of a wave in which the object is deleted: webhooks and instances of managed types go before
// what may serve them.
func (it *item) removalStage() int {
	if it.kind.isWebhook || it.kind.managed && !it.isContainer() {
		return 0
	}
	return 1
}

// aliases returns two shortened keys. Two keys of the same object share one of them, since an object may be served
// under two groups, and a type may change its scope. The first has no group. The second has the scope in the place of
// the namespace.
func aliases(k Key, namespaced bool) [2]Key {
	scope := ""
	if namespaced {
		scope = "*"
	}
	return [2]Key{
		{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name},
		{Group: k.Group, Kind: k.Kind, Namespace: scope, Name: k.Name},
	}
}

// findAliases finds records of objects that are desired under another key. If it is known to be the same object, the
// record is dropped: to delete it would be to delete the desired object. As long as that is not known, the object is
// not deleted.
func (b *builder) findAliases() {
	// The value is whether the object is desired.
	present := map[types.UID]bool{}
	for _, it := range b.undesired {
		if it.state != stateGone && it.observed.Presence == Present {
			present[it.observed.UID] = false
		}
	}
	if len(present) == 0 {
		return
	}
	missing := map[Key]bool{}
	for _, it := range b.desired {
		if it.record.Phase == apis.PhaseCompleted || isPurging(it.record.Phase) {
			continue
		}
		if it.observed.Presence != Present {
			for _, key := range aliases(it.key, it.key.Namespace != "") {
				missing[key] = true
			}
		} else if _, both := present[it.observed.UID]; both {
			present[it.observed.UID] = true
		}
	}
	for _, it := range b.undesired {
		if it.observed.Presence == Present && present[it.observed.UID] {
			it.state = stateGone
		}
		other := aliases(it.key, it.key.Namespace == "")
		it.aliased = missing[other[0]] || missing[other[1]]
	}
}
