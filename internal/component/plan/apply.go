package plan

import (
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
)

// What operations are for, and what objects wait for, in words that stay the same.
const (
	reasonNew         = "it does not exist"
	reasonMissing     = "it is gone"
	reasonUnowned     = "it exists and belongs to nobody"
	reasonOwned       = "it exists and belongs to "
	reasonMarks       = "somebody removed its marks"
	reasonChanged     = "something else is desired of it"
	reasonUnknown     = "it is not known what was written last"
	reasonFields      = "it is not known whether the last write was complete"
	reasonDrift       = "somebody changed it"
	reasonContent     = "its content differs"
	reasonReapply     = "it is to be rewritten periodically"
	messageUnseen     = "it is not known yet whether it exists"
	messageLeaving    = "it is being deleted"
	messageUnserved   = "the cluster does not serve its type"
	messageUntyped    = "its type is not served yet"
	messageNamespace  = "its namespace is being deleted"
	messageStale      = "its last change is not observed yet"
	messageUnreviewed = "it is not known yet whether it is ready"
	messageUnready    = "it is not ready"
	messageFailed     = "it cannot become ready"
	messageNever      = "it exists already, and is not to be adopted"
)

// apply plans for a component that is to be there.
func (m *maker) apply() {
	matches := m.gather(m.in.Desired)
	for i := range m.items {
		if it := &m.items[i]; it.desired != nil {
			desire(it.record, it.desired)
		} else {
			undesire(it.record)
			it.forget()
			m.undesired = append(m.undesired, it)
		}
	}
	m.twins()
	m.classify()

	places := make([]place, 0, len(matches))
	for i, position := range matches {
		if it := &m.items[position]; it.desired == &m.in.Desired[i] {
			places = append(places, placeOf(it.desired.ApplyOrder, it.kind.applyPriority, i))
		}
	}
	m.desired = make([]*item, len(places))
	for i, p := range ordered(places) {
		m.desired[i] = &m.items[matches[p.position()]]
	}

	for _, it := range m.desired {
		m.assess(it)
	}
	m.prunable()
	m.roll()
	m.turns()

	for _, it := range m.undesired {
		m.offer(it, rank{section: sectionRemove, wave: it.wave, stage: it.removalStage(), priority: int(it.kind.deletePriority)})
	}
	open := false
	for _, it := range m.desired {
		r := rank{section: sectionWrite, wave: it.wave, stage: it.stage(), priority: int(it.kind.applyPriority)}
		if purging(it.record.Phase) {
			r = rank{section: sectionPurge, wave: m.purgeWave(it), priority: int(it.kind.deletePriority)}
		}
		m.offer(it, r)
		if o, is := it.obstacle(); is {
			m.plan.Obstacles = append(m.plan.Obstacles, o)
		}
		open = open || it.state != stateDone
	}
	for _, it := range m.undesired {
		if o, is := it.obstacle(); is {
			m.plan.Obstacles = append(m.plan.Obstacles, o)
		}
		open = open || it.state != stateGone
	}
	m.plan.Done = !open
	m.finish()
}

// assess decides about an object that is desired, whether or not it is its turn.
func (m *maker) assess(it *item) {
	r := it.record
	switch {
	case r.Phase == apis.PhaseCompleted:
		return
	case purging(r.Phase):
		it.purge()
		return
	}
	it.rollout = r.Phase == apis.PhaseScheduledForApplication
	switch it.seen.Presence {
	case Present:
		if it.seen.Terminating {
			it.wait(apis.ObjectTerminating, messageLeaving)
		} else {
			m.assessPresent(it)
		}
	case Absent:
		m.assessAbsent(it)
	default:
		it.unseen = true
		it.pause(messageUnseen)
	}
	it.fail()
}

func (m *maker) assessAbsent(it *item) {
	if it.seen.TypeMissing {
		if it.kind.managed {
			it.wait(apis.ObjectNotFound, messageUntyped)
		} else {
			it.stand(stateFailed, apis.ObjectFailed, messageUnserved)
		}
		return
	}
	if held, message := it.withoutNamespace(); message != "" {
		it.wait(apis.ObjectNotFound, message)
		return
	} else if held {
		it.act(ActionCreate, reasonNew)
		it.hold()
		return
	}
	if it.record.Phase == apis.PhaseReady {
		it.record.Status = apis.ObjectNotFound
	}
	if it.rollout || it.record.Phase == apis.PhaseRecreating {
		it.act(ActionCreate, reasonNew)
	} else {
		it.act(ActionCreate, reasonMissing)
	}
}

// withoutNamespace tells whether the object cannot be created because a namespace of the component is not there, and what to say if
// that cannot be helped.
func (it *item) withoutNamespace() (held bool, message string) {
	if it.space == nil {
		return false, ""
	}
	space := it.space.item
	switch {
	case space.seen.Presence == Present:
		if space.seen.Terminating {
			return true, messageNamespace
		}
		return false, ""
	case space.desired == nil || space.desired.ApplyOrder > it.desired.ApplyOrder:
		// It would not be created first. The API server knows better.
		return false, ""
	default:
		return true, ""
	}
}

func (m *maker) assessPresent(it *item) {
	if it.seen.Ownership != Ours {
		it.claim()
		return
	}
	take(it.record, &it.seen)
	if action, reason := correction(it, m.in.Now); action != "" {
		it.act(action, reason)
		return
	}
	it.settle()
	if it.record.LastAppliedAt != nil {
		due := it.record.LastAppliedAt.Add(it.desired.ReapplyInterval)
		if m.plan.Reapply.IsZero() || due.Before(m.plan.Reapply) {
			m.plan.Reapply = due
		}
	}
}

// claim decides about an object that is there, and is not ours.
func (it *item) claim() {
	d, s := it.desired, &it.seen
	owned := it.record.UID != ""
	var reason string
	switch {
	case s.Ownership == Foreign && owned:
		it.stand(stateNotOurs, apis.ObjectFailed, "it was taken over by "+ownerName(s.Owner))
		return
	case s.Ownership == Foreign && d.AdoptionPolicy != apis.AdoptAlways:
		it.stand(stateNotOurs, apis.ObjectFailed, "it belongs to "+ownerName(s.Owner))
		return
	case d.AdoptionPolicy == apis.AdoptNever:
		it.stand(stateNotOurs, apis.ObjectFailed, messageNever)
		return
	case s.Ownership == Foreign:
		reason = reasonOwned + ownerName(s.Owner)
	case owned:
		reason = reasonMarks
	default:
		reason = reasonUnowned
	}
	if it.recreatable() {
		it.act(ActionRecreate, reason)
	} else {
		it.act(ActionAdopt, reason)
	}
}

// recreatable tells whether the object is to be deleted and created anew: its policy says so, and it was written for a
// content that is not the one desired. One that defines types is never recreated, nor is a namespace: what is in them would go.
// Nor is one that is to be written once, and exists.
func (it *item) recreatable() bool {
	d := it.desired
	scheduled := it.record.Phase == apis.PhaseScheduledForApplication || it.record.Phase == apis.PhaseRecreating
	return d.UpdatePolicy == apis.UpdateRecreate && scheduled && !it.holder() &&
		it.seen.Digest != "" && it.seen.Digest != d.Digest && d.Digest != DigestOnce
}

// correction decides what is to be written of an object that is ours, if anything.
func correction(it *item, now time.Time) (Action, string) {
	d, r, s := it.desired, it.record, &it.seen
	write := ActionApply
	if d.UpdatePolicy == apis.UpdateReplace {
		write = ActionReplace
	}
	if s.Digest != d.Digest {
		switch {
		case it.recreatable():
			return ActionRecreate, reasonChanged
		case s.Digest == "":
			return write, reasonUnknown
		case it.rollout:
			return write, reasonChanged
		default:
			return write, reasonDrift
		}
	}
	switch {
	case d.Digest == DigestOnce:
		return "", ""
	case s.Content == ContentDifferent:
		return write, reasonContent
	case r.Fields == "":
		return write, reasonFields
	case r.Fields != s.Fields && !(r.Fields == FieldsNone && s.Fields == ""):
		return write, reasonDrift
	case d.ReapplyInterval > 0 && (r.LastAppliedAt == nil || now.Sub(r.LastAppliedAt.Time) >= d.ReapplyInterval):
		return write, reasonReapply
	default:
		return "", ""
	}
}

// settle decides about an object that is as it should be, by how ready it is.
func (it *item) settle() {
	r, s := it.record, &it.seen
	it.rollout = false
	observed := s.Generation >= r.Generation
	if observed && s.Status == apis.ObjectCurrent {
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
	message := s.Message
	switch {
	case s.Status == "":
		it.pause(messageUnreviewed)
	case !observed:
		it.wait(apis.ObjectInProgress, messageStale)
	case s.Status == apis.ObjectFailed:
		if message == "" {
			message = messageFailed
		}
		it.stand(stateFailed, s.Status, message)
	default:
		if message == "" {
			message = messageUnready
		}
		it.wait(s.Status, message)
		it.volatile = s.Volatile
	}
}

// ownerName names an owner for people: the clear text without the UID, which says nothing to them.
func ownerName(owner string) string {
	if owner == "" {
		return "another component"
	}
	parts := strings.Split(owner, "/")
	if len(parts) != 4 || parts[2] == "" {
		return shorten(owner, recordMessage/2)
	}
	return shorten(Key{Kind: parts[0], Namespace: parts[1], Name: parts[2]}.String(), recordMessage/2)
}
