package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// The reasons for operations, and what objects wait for. They are stable.
const (
	reasonNew        = "it does not exist"
	reasonMissing    = "it is gone"
	reasonExists     = "it exists"
	reasonUnlabelled = "its owner label was removed"
	reasonRemnant    = "a controller wrote it after it was deleted"
	reasonChanged    = "its desired state changed"
	reasonUnknown    = "it is not known what was written last"
	reasonFields     = "it is not known whether the last write was complete"
	reasonDrift      = "it was changed in the cluster"
	reasonMarks      = "its marks do not name the cluster of their owner"
	reasonContent    = "its content differs"
	reasonReapply    = "it is to be rewritten periodically"
	reasonPurge      = "its purge order is reached"
	reasonReleased   = "it is not desired any more, and the API server refuses to write a desired object because of it"
	reasonPurgeAgain = "it was purged, and exists again"

	messageUnobserved   = "it is not known yet whether it exists"
	messageTerminating  = "it is being deleted"
	messageUnserved     = "the cluster does not serve its type"
	messageNotServedYet = "its type is not served yet"
	messageMisplaced    = "its type is served with another scope"
	messageNamespace    = "its namespace is being deleted"
	messageStale        = "its last change is not observed yet"
	messageNoStatus     = "it is not known yet whether it is ready"
	messageAbsent       = "it does not exist, and is only read"
	messageUnready      = "it is not ready"
	messageFailed       = "it cannot become ready"
)

// apply plans for a component that is to exist.
func (b *builder) apply() {
	b.match(b.in.Desired)
	for i := range b.items {
		if it := &b.items[i]; it.desired != nil {
			recordDesired(it.record, it.desired)
		} else {
			recordUndesired(it.record)
			b.recordLeaving(it)
			b.dropUnlessOurs(it)
			b.undesired = append(b.undesired, it)
		}
	}
	pruning := len(b.undesired) > 0
	if pruning {
		b.findAliases()
	}
	b.resolveKinds()

	places := make([]place, len(b.desired))
	for i, it := range b.desired {
		places[i] = placeOf(it.desired.ApplyOrder, it.kind.applyPriority, i)
	}
	b.desired = inOrder(b.desired, places)
	for _, it := range b.desired {
		b.assess(it)
	}
	if pruning {
		b.assessRemovals(apis.DeleteOrphanOnApply)
		b.allowLeaving()
		b.release()
	}
	b.openWaves()
	if pruning {
		b.sequenceDeletions()
	}
	b.finish()
}

// isPurgeable reports whether the object is to be purged. Namespaces and objects that define types never are: their
// deletion would delete others.
func isPurgeable(r *apis.InventoryRecord) bool {
	if r.PurgeOrder == nil || len(r.ManagedTypes) > 0 {
		return false
	}
	return !kinds.IsContainer(KeyOf(*r).GroupKind())
}

// recordDesired copies the desired state into the record.
func recordDesired(r *apis.InventoryRecord, d *Desired) {
	r.Group, r.Version, r.Kind = d.Group, d.Version, d.Kind
	r.Namespace, r.Name = d.Namespace, d.Name
	r.AdoptionPolicy = omitDefault(d.AdoptionPolicy, apis.AdoptNever)
	r.ReconcilePolicy = omitDefault(d.ReconcilePolicy, apis.ReconcileOnObjectChange)
	r.UpdatePolicy = omitDefault(d.UpdatePolicy, apis.UpdateApply)
	recordAdoption(r, d, r.Adopted)
	if r.PrunePolicy = d.PrunePolicy; !holdsData(r) {
		r.PrunePolicy = omitDefault(d.PrunePolicy, apis.PruneWith)
	}
	r.ApplyOrder, r.DeleteOrder = d.ApplyOrder, d.DeleteOrder
	switch {
	case d.PurgeOrder == nil:
		r.PurgeOrder = nil
	case r.PurgeOrder == nil || *r.PurgeOrder != *d.PurgeOrder:
		r.PurgeOrder = new(*d.PurgeOrder)
	}
	if !slices.Equal(r.ManagedTypes, d.ManagedTypes) {
		r.ManagedTypes = slices.Clone(d.ManagedTypes)
	}
	r.IgnoreForeignInstances = d.IgnoreForeignInstances
	if d.ReapplyInterval <= 0 || d.Digest == DigestOnce {
		r.LastAppliedAt = nil
	}
	once := sameOrigin(d.Digest, DigestOnce)
	notPurgedAnyMore := !isPurgeable(r) && (isPurging(r.Phase) ||
		r.Phase == apis.PhaseCompleted && !d.Expires && !once)
	// What is gone for good does not come back because it was suspended, or is to be.
	gone := r.Phase == apis.PhaseCompleted && sameOrigin(r.Digest, d.Digest)
	if r.Phase == apis.PhaseCompleted && r.Digest == DigestTakenOver {
		r.Digest, gone = d.Digest, true
	}
	if r.Digest != d.Digest && !gone || r.Phase == "" || isLeaving(r.Phase) || notPurgedAnyMore {
		r.Digest = d.Digest
		r.Phase, r.Status, r.Message = apis.PhaseScheduledForApplication, apis.ObjectInProgress, ""
	}
}

// RecordOf returns the record of an object that is ours although it has no record. It counts as adopted if it may be.
func RecordOf(d *Desired) apis.InventoryRecord {
	r := apis.InventoryRecord{Adopted: d.AdoptionPolicy != apis.AdoptNever}
	recordDesired(&r, d)
	return r
}

// recordAdoption records whether the object was adopted, and the delete policy, which then has another default. A
// namespace that was adopted is never deleted: what others have in it may be created right before the deletion.
func recordAdoption(r *apis.InventoryRecord, d *Desired, adopted bool) {
	r.Adopted, r.DeletePolicy = adopted, omitDefault(d.DeletePolicy, apis.DeleteDelete)
	if adopted && (d.DeletePolicy == "" || d.GroupKind() == kinds.Namespace) {
		r.DeletePolicy = apis.DeleteOrphan
	}
}

// omitDefault returns value, or the empty value for the default, which records omit.
func omitDefault[Policy ~string](value, byDefault Policy) Policy {
	if value == byDefault {
		return ""
	}
	return value
}

// recordUndesired records that the object is not desired any more. Such a record has no digest.
func recordUndesired(r *apis.InventoryRecord) {
	if r.Digest == "" && isLeaving(r.Phase) {
		return
	}
	r.Digest, r.LastAppliedAt = "", nil
	r.Phase, r.Status, r.Message = apis.PhaseScheduledForDeletion, apis.ObjectTerminating, ""
}

// recordLeaving records what becomes of the object, if that does not depend on the delete policy. A namespace that was
// adopted is never deleted.
func (b *builder) recordLeaving(it *item) {
	policy, ok := b.in.Leaving[it.key]
	if ok && !(it.record.Adopted && it.key.GroupKind() == kinds.Namespace) {
		it.record.DeletePolicy = omitDefault(policy, apis.DeleteDelete)
	}
}

// allowLeaving allows to delete objects that run, whichever wave waits for another one.
func (b *builder) allowLeaving() {
	if !b.in.Suspended {
		return
	}
	for _, it := range b.undesired {
		if _, ok := b.in.Leaving[it.key]; ok {
			allowDeletion([]*item{it})
		}
	}
}

// release lets objects go at once that keep desired ones from being written.
func (b *builder) release() {
	for _, it := range b.undesired {
		if _, ok := b.in.Released[it.key]; ok && it.state == stateAct && it.action == ActionDelete {
			allowDeletion([]*item{it})
			if it.released = it.deletable; it.released {
				it.reason = reasonReleased
			}
		}
	}
}

// recordUID records the UID of the observed object. Generations of an object with another UID start again.
func recordUID(r *apis.InventoryRecord, o *Observed) {
	if r.UID != o.UID {
		r.UID, r.Generation = o.UID, 0
	}
}

// assess decides what a desired object needs, as if its wave were open. The first line that applies counts:
//
//	the record says      observed             decision
//	is only read         anything             see assessReadOnly
//	anything             cannot exist         wait, without a record
//	completed            anything             nothing to do
//	purge has begun      anything             see assessPurge
//	anything else        nothing yet          wait
//	                     gone for good        see assessEnded
//	                     absent               create; wait for a type or namespace of the component
//	                     terminating          wait
//	                     not ours             adopt, relabel, recreate, or an obstacle
//	                     ours, not as desired write, or recreate
//	                     ours, as desired     done, or wait until it is ready
//
// A write to an object that is contested is put off, see [Corrections].
func (b *builder) assess(it *item) {
	r := it.record
	switch {
	case it.desired.ReadOnly:
		b.assessReadOnly(it)
		return
	case it.observed.Misplaced:
		*r = apis.InventoryRecord{}
		recordDesired(r, it.desired)
		it.unwritten = true
		it.setState(stateWaiting, apis.ObjectNotFound, messageMisplaced)
		return
	case r.Phase == apis.PhaseCompleted:
		return
	case isPurging(r.Phase):
		it.assessPurge()
		return
	}
	it.unwritten = r.Phase == apis.PhaseScheduledForApplication
	switch {
	case it.observed.Presence == PresenceUnknown:
		it.waitForObservation(messageUnobserved)
	case it.observed.Presence == Absent:
		it.assessAbsent()
	case it.observed.Terminating:
		if it.observed.Ownership != Ours || !it.assessEnded() {
			it.setState(stateWaiting, apis.ObjectTerminating, it.observed.deletion())
		}
	case it.observed.Ownership != Ours:
		it.assessNotOurs()
	default:
		b.assessOurs(it)
	}
	it.dropFailed()
	if len(b.in.Corrections) > 0 {
		b.contest(it)
	}
}

func (it *item) assessAbsent() {
	r := it.record
	// What is created anew was not adopted.
	recordAdoption(r, it.desired, false)
	switch {
	case it.observed.TypeMissing && it.kind.managed:
		it.setState(stateWaiting, apis.ObjectNotFound, messageNotServedYet)
		return
	case it.observed.TypeMissing:
		it.setState(stateFailed, apis.ObjectFailed, messageUnserved)
		return
	case it.assessEnded():
		return
	}
	if namespace := it.namespace; namespace != nil {
		switch {
		case namespace.observed.Presence == Present:
			if namespace.observed.Terminating {
				it.setState(stateWaiting, apis.ObjectNotFound, messageNamespace)
				return
			}
		case namespace.desired != nil && namespace.desired.ApplyOrder <= it.desired.ApplyOrder &&
			namespace.record.Phase != apis.PhaseCompleted:
			it.setAction(ActionCreate, reasonNew)
			it.hold()
			return
		default:
			// The component does not create the namespace first. The API server knows whether it exists.
		}
	}
	if r.Phase == apis.PhaseReady {
		r.Status = apis.ObjectNotFound
	}
	if it.unwritten || r.Phase == apis.PhaseRecreating {
		it.setAction(ActionCreate, reasonNew)
	} else {
		it.setAction(ActionCreate, reasonMissing)
	}
}

// assessNotOurs decides about an object that exists and is not ours. An object that we wrote, and that has the UID of
// the record, has lost its label. Adoption is recorded before the object is written.
func (it *item) assessNotOurs() {
	d, r, o := it.desired, it.record, &it.observed
	switch {
	case IsRemnant(it.key.GroupKind(), o.Ownership, o.Claim, r.UID):
		it.setAction(ActionRelabel, reasonRemnant)
		recordAdoption(r, d, false)
	case !MayTakeOver(d.AdoptionPolicy, o.Ownership, r.UID, o.UID):
		it.setState(stateNotOurs, apis.ObjectFailed, it.refusal())
		if r.UID == "" {
			recordAdoption(r, d, false)
		}
		return
	case r.UID == o.UID && o.Ownership == Unlabelled:
		it.setAction(ActionRelabel, reasonUnlabelled)
	case o.Claim == "":
		it.setAction(ActionAdopt, reasonExists)
	default:
		it.setAction(ActionAdopt, reasonExists+" and "+o.Claim)
	}
	if it.isToBeRecreated() {
		it.action = ActionRecreate
	} else if it.action == ActionAdopt {
		recordAdoption(r, d, true)
	}
}

// refusal says whose an object is that may not be taken over, and what would adopt it.
func (it *item) refusal() string {
	o := &it.observed
	switch {
	case o.Ownership == Foreign && it.record.UID != "":
		return "it was ours, and now " + o.Claim
	case o.Ownership == Foreign:
		return "it " + o.Claim + "; adoption-policy: always adopts it"
	case o.Claim == "":
		return "it exists already; adoption-policy: if-unowned adopts it"
	default:
		return "it exists already and " + o.Claim + "; adoption-policy: if-unowned adopts it"
	}
}

func (b *builder) assessOurs(it *item) {
	recordUID(it.record, &it.observed)
	if action, reason := it.neededWrite(b.in.Now); action != "" {
		it.setAction(action, reason)
		return
	}
	it.assessReadiness()
	if it.record.LastAppliedAt != nil {
		due := it.record.LastAppliedAt.Add(it.desired.ReapplyInterval)
		if b.plan.Reapply.IsZero() || due.Before(b.plan.Reapply) {
			b.plan.Reapply = due
		}
	}
}

// isToBeRecreated reports whether the object is to be deleted and created again: its policy says so, and it was
// written for another desired state. Exceptions are objects whose deletion would delete others, and objects that are
// written once.
func (it *item) isToBeRecreated() bool {
	d, phase := it.desired, it.record.Phase
	return d.UpdatePolicy == apis.UpdateRecreate && !it.isContainer() &&
		(phase == apis.PhaseScheduledForApplication || phase == apis.PhaseRecreating) &&
		it.observed.Digest != "" && !sameOrigin(it.observed.Digest, d.Digest) && d.Digest != DigestOnce
}

// neededWrite decides what has to be written to an object that is ours. The action is empty if the object is as
// desired.
func (it *item) neededWrite(now time.Time) (write Action, reason string) {
	d, r, o := it.desired, it.record, &it.observed
	write = ActionApply
	if d.UpdatePolicy == apis.UpdateReplace {
		write = ActionReplace
	}
	switch {
	case o.Digest == d.Digest:
	case it.isToBeRecreated():
		return ActionRecreate, reasonChanged
	case o.Digest == "":
		return write, reasonUnknown
	case it.unwritten:
		return write, reasonChanged
	default:
		return write, reasonDrift
	}
	switch {
	case d.Digest == DigestOnce:
		return "", ""
	case o.FormerMarks:
		return write, reasonMarks
	case o.Content == ContentDifferent:
		return write, reasonContent
	case r.Fields == "":
		return write, reasonFields
	case r.Fields != o.Fields && !(r.Fields == FieldsNone && o.Fields == ""):
		return write, reasonDrift
	case d.ReapplyInterval > 0 && (r.LastAppliedAt == nil || now.Sub(r.LastAppliedAt.Time) >= d.ReapplyInterval):
		return write, reasonReapply
	default:
		return "", ""
	}
}

// assessReadiness decides about an object that is as desired.
func (it *item) assessReadiness() {
	r, o := it.record, &it.observed
	it.unwritten = false
	upToDate := o.Generation >= r.Generation
	if upToDate && o.Status == apis.ObjectCurrent || it.desired.Unchecked {
		r.Phase, r.Status, r.Message = apis.PhaseReady, "", ""
		it.state = stateDone
		return
	}
	switch r.Phase {
	case apis.PhaseScheduledForApplication:
		r.Phase = apis.PhaseUpdating
	case apis.PhaseRecreating:
		r.Phase = apis.PhaseCreating
	default:
	}
	switch {
	case o.Status == "":
		it.waitForObservation(messageNoStatus)
	case !upToDate:
		it.setState(stateWaiting, apis.ObjectInProgress, messageStale)
	case o.Status == apis.ObjectFailed:
		it.setState(stateFailed, o.Status, cmp.Or(o.Message, messageFailed))
	default:
		it.setState(stateWaiting, o.Status, cmp.Or(o.Message, messageUnready))
		it.volatile = o.Volatile
	}
}

// assessPurge decides about a desired object whose purge has begun.
func (it *item) assessPurge() {
	r, o := it.record, &it.observed
	switch {
	case o.Presence == PresenceUnknown:
		it.waitForObservation(messageUnobserved)
	case o.Presence == Absent || o.Ownership != Ours:
		recordPurged(r)
		it.state = stateDone
	case o.Terminating:
		it.setState(stateWaiting, apis.ObjectTerminating, it.observed.deletion())
	default:
		recordUID(r, o)
		switch {
		case r.DeletePolicy == apis.DeleteOrphan:
			it.setAction(ActionOrphan, reasonPurge)
		case r.Phase == apis.PhaseCompleting:
			it.setAction(ActionPurge, reasonPurgeAgain)
		default:
			it.setAction(ActionPurge, reasonPurge)
		}
	}
	it.dropFailed()
}
