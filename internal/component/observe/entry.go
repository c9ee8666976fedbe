package observe

import (
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// ownRequestLimit is how long the component's own requests count against a watch that does not show them. Without a
	// limit, the watch would never count again after the cluster was restored from a backup: resource versions then go
	// back.
	ownRequestLimit = 10 * time.Minute
	// invisibleLimit is how long the response about an object counts that no watch can show, or not in an order that is
	// known.
	invisibleLimit = 10 * time.Second
	// retryAfter is how long an object is not read again that could not be read.
	retryAfter = 10 * time.Second
)

// entry is the interest of one component in one object, with what its own requests say about the object. It is guarded
// by the lock of the [Watching].
//
// What is believed of the object (see latest) depends on the phase of its type, on what the watch shows, and on the
// response of the last request. The watch selects objects by the owner label.
//
//	phase       the watch shows  the response says       believed is
//	missing     –                –                       absent
//	live        an object        an object, newer        the response, for ownRequestLimit
//	live        nothing          labelled, newer than    the response, for ownRequestLimit
//	                             all that was shown
//	live        nothing          without the label       the response, for invisibleLimit, or as long as a watch by
//	                                                     name covers it
//	live        nothing          that none exists        absent
//	live        object u         that u is gone          absent, for ownRequestLimit
//	starting    any              labelled, or gone       the response
//	starting    any              without the label       the response, for invisibleLimit
//	polled      any              an object, not older    the response, which is read again after Options.Poll
//	polled      any              that none exists        absent, the same
//	any other   an object        an older object, none   what the watch shows, if it ever was live
//	any other   nothing          none                    absent if the component never created it, else unknown
//
// The phase unresolved is like starting. A response that does not count any more is dropped when it is looked at
// (latest), or when the watch shows something newer (onEvent).
type entry struct {
	state *componentState
	typ   *watchedType
	// slot is nil once the interest has ended.
	slot *slot
	name types.NamespacedName
	// round is the round of the last Observe that named the object.
	round uint64

	uid types.UID
	// settings is the hash of the settings that matter here; 0 before they are known.
	settings uint64
	// readiness reports whether it matters how ready the object is, and static whether it is ready as soon as it
	// exists.
	readiness, static bool
	fresh             bool
	// established reports whether a definition said last that its types are served.
	established bool
	// readOnly reports whether each change of the object matters, although it is not the component's.
	readOnly bool
	// wantsEnding reports whether it matters how the object ended.
	wantsEnding bool
	// readAgain reports whether the object has to be read again although it was read lately. It matters only for types
	// that are polled.
	readAgain bool
	// dropped reports whether nobody asks for the object any more once it is known to be absent.
	dropped bool

	// response is what a request said last, while that may be newer than what the watch shows.
	response *response
	// byName is the watch of the object by its name; nil if there is none.
	byName *nameWatch
	// deletion is a delete of the component's own, after which the object may linger.
	deletion *deletion
	// evaluation is how ready the object was last.
	evaluation *evaluation
	// failure is why the object could not be read last.
	failure *readFailure
	// fields is the digest of the fields of our manager in the snapshot fieldsOf.
	fields   string
	fieldsOf *snapshot
	// last is the last version of an object that is gone, if the watch has shown its deletion, and wantsEnding.
	last *snapshot
}

// response is what a request said about an object.
type response struct {
	// snapshot is nil if the object did not exist.
	snapshot *snapshot
	// gone is the UID of the object that does not exist any more; empty if it is not known.
	gone types.UID
	// at is the time of the request.
	at time.Time
}

type deletion struct {
	uid types.UID
	at  time.Time
}

// evaluation is how ready one version of an object is.
//
// A heartbeat makes a new version several times a second, and each would be read. So what is ready, and was as ready
// when it was read before, is not read again for a while: only its metadata are watched, and they show the generation,
// the marks and the fields of our manager, but not the status. Newer versions of the same generation count as ready
// until then.
type evaluation struct {
	uid        types.UID
	version    string
	generation int64
	result     readiness.Result
	// same is how often in a row a read found no other result, and due when a newer version is read.
	same int
	due  time.Time
	// counts reports whether the last Observe returned the result for a newer version, and said when it is due. Until
	// then, a version that differs in no metadata is no news.
	counts bool
}

// readPauses are the times that a read object is not read again, by how often in a row it was found as ready as before.
// The first are short: some controllers write their first status after the object was seen without one, and ready.
var readPauses = [...]time.Duration{0, time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute}

// follow makes the evaluation the one after another, which may be nil.
func (v *evaluation) follow(before *evaluation, now time.Time) {
	v.due = now
	if before == nil || !v.extends(before.uid, before.generation) || before.result != v.result {
		return
	}
	const longest = len(readPauses) - 1
	if v.same = min(before.same+1, longest); now.Sub(before.due) >= readPauses[longest] {
		v.same = 1
	}
	v.due = now.Add(readPauses[v.same])
}

// extends reports whether it may count for other versions of that object.
func (v *evaluation) extends(uid types.UID, generation int64) bool {
	return v.uid == uid && v.generation == generation && v.result.Status == apis.ObjectCurrent
}

type readFailure struct {
	class errorClass
	at    time.Time
}

// hashSettings returns a hash of settings, which is never 0. It is 1 if neither readiness nor the digest of the fields
// depends on them.
func hashSettings(s *generator.Settings) uint64 {
	hint := &s.StatusHint
	if s.ReadyWhen == "" && len(s.IgnoreFields) == 0 &&
		!hint.HasObservedGeneration && !hint.HasReadyCondition && len(hint.Conditions) == 0 {
		return 1
	}
	sum, _ := digest.Of(s)
	return sum | 2
}

// set stores what the component says of the object.
func (e *entry) set(in *Interest) {
	e.uid, e.readiness, e.static, e.fresh, e.wantsEnding = in.UID, in.Readiness, in.Static, in.Fresh, in.Ending
	e.readOnly, e.dropped = in.ReadOnly, in.Dropped
	if shown := e.slot.shown; shown != nil && shown.uid == in.UID {
		// This keeps one text in memory rather than two.
		e.uid = shown.uid
	}
	settings := hashSettings(&in.Settings)
	if in.Suspended != nil {
		settings ^= suspendedHash
	}
	if settings != e.settings {
		e.settings = settings
		e.evaluation, e.fieldsOf = nil, nil
	}
}

// suspendedHash makes the hash of the settings of an object that is to be suspended differ from any other, and not be
// 0.
const suspendedHash = 1 << 63

func (e *entry) is(key plan.Key) bool {
	return e.name.Name == key.Name && e.name.Namespace == key.Namespace && e.typ.GroupKind == key.GroupKind()
}

// neverCreated reports whether the component cannot have created the object.
func (e *entry) neverCreated() bool { return e.fresh && e.uid == "" }

// latest returns the version of the object that is believed at a time, nil if there is none, and whether the object
// exists.
func (e *entry) latest(now time.Time) (*snapshot, plan.Presence) {
	shown := e.slot.shown
	if r := e.response; r != nil {
		if r.counts(e.typ, shown, now) || shown == nil && e.byName.covers(r) {
			if r.snapshot == nil {
				return nil, plan.Absent
			}
			return r.snapshot, plan.Present
		}
		e.response = nil
	}
	switch {
	case e.typ.phase == missing:
		return nil, plan.Absent
	case shown != nil && e.typ.wasLive:
		return shown, plan.Present
	case e.neverCreated():
		return nil, plan.Absent
	}
	return nil, plan.PresenceUnknown
}

// current reports whether what is believed is up to date: the watch is open, or the object was read at that time.
func (e *entry) current(now time.Time) bool {
	return e.typ.phase == live && e.typ.listed && e.typ.stream != nil ||
		e.response != nil && e.response.snapshot != nil && e.response.at.Equal(now)
}

// counts reports whether a response is newer than what the watch shows; see the table of entry.
func (r *response) counts(t *watchedType, shown *snapshot, now time.Time) bool {
	age := now.Sub(r.at)
	said := r.snapshot
	switch t.phase {
	case missing:
		return false
	case live:
		switch {
		case said == nil:
			return shown == nil || r.gone != "" && shown.uid == r.gone && age <= ownRequestLimit
		case shown != nil:
			return older(shown.version, said.version) && age <= ownRequestLimit
		}
		order, err := resourceversion.CompareResourceVersion(t.progress, said.version)
		if said.marks.Label == "" || err != nil {
			return age <= invisibleLimit
		}
		return order < 0 && age <= ownRequestLimit
	case polled:
		return said == nil || shown == nil || !older(said.version, shown.version)
	}
	return said == nil || said.marks.Label != "" || age <= invisibleLimit
}

// onEvent handles an event of the watch at a resource version: the watch showed old before, and shows shown now. Nil
// stands for no object. onEvent reports whether that is news to the component, and drops what the event is newer than.
func (e *entry) onEvent(old, shown *snapshot, version string) (news bool) {
	news = e.isNews(old, shown, version) || shown == nil && e.awaitsEnding(old)
	r := e.response
	e.failure = nil
	if shown != nil {
		e.last = nil
	}
	switch {
	case shown == nil && old != nil && (old.terminating || e.deletion != nil && e.deletion.uid == old.uid):
		// It was deleted and did not only lose the label, so it need not be read.
		if r == nil || r.snapshot == nil || r.snapshot.uid == old.uid {
			e.response = &response{gone: old.uid}
		}
		e.deletion = nil
	case r == nil:
	case shown == nil:
		if r.snapshot != nil && r.snapshot.marks.Label != "" && !older(version, r.snapshot.version) {
			e.response = nil
		}
	case r.snapshot == nil:
		if shown.uid != r.gone {
			e.response = nil
		}
	case !older(shown.version, r.snapshot.version):
		e.response = nil
	}
	if d := e.deletion; d != nil && shown != nil && (shown.uid != d.uid || shown.terminating) {
		e.deletion = nil
	}
	return news
}

// isNews compares an event with the newer of what the watch showed and of what the last request said.
func (e *entry) isNews(old, shown *snapshot, version string) bool {
	before, r := old, e.response
	switch {
	case r == nil:
	case r.snapshot == nil && (old == nil || old.uid == r.gone):
		before = nil
	case r.snapshot != nil && (old == nil || older(old.version, r.snapshot.version)):
		before = r.snapshot
	}
	switch {
	case shown == nil:
		return before != nil && (before == old || !older(version, before.version) && before.marks.Label != "")
	case r != nil && r.snapshot == nil && shown.uid == r.gone:
		return false
	case before == nil:
		return true
	case before.version == shown.version || before != old && older(shown.version, before.version):
		return false
	case !before.alike(shown):
		return true
	}
	return e.readiness && !e.static && !shown.terminating && !e.awaitsRead()
}

// awaitsRead reports whether the object is read anyway once its evaluation is due.
func (e *entry) awaitsRead() bool { return e.evaluation != nil && e.evaluation.counts }

// accept records that a request returned the object.
func (e *entry) accept(s *snapshot, result *evaluation, now time.Time) {
	e.failure, e.readAgain = nil, false
	if e.last != nil && (e.last.uid != s.uid || !older(s.version, e.last.version)) {
		e.last = nil
	}
	if e.deletion != nil && e.deletion.uid != s.uid {
		e.deletion = nil
	}
	if result != nil {
		result.follow(e.evaluation, now)
		e.evaluation = result
	}
	if n := e.byName; n != nil && n.shown != nil && older(s.version, n.shown.version) {
		return
	}
	if shown := e.slot.shown; shown == nil || e.typ.phase != live || older(shown.version, s.version) {
		e.response = &response{snapshot: s, at: now}
	}
}

// evaluated reports whether it is known how ready the version of the object is.
func (e *entry) evaluated(s *snapshot) bool {
	v := e.evaluation
	return v != nil && v.uid == s.uid && v.version == s.version
}

// terminating reports whether the object is being deleted.
func (e *entry) terminating(s *snapshot, now time.Time) bool {
	return s.terminating || e.deletion != nil && e.deletion.uid == s.uid && now.Sub(e.deletion.at) <= ownRequestLimit
}

// setStatus fills in how ready the object is.
func (e *entry) setStatus(o *plan.Observed, s *snapshot) {
	switch {
	case !e.readiness:
	case o.Terminating:
		o.Status = apis.ObjectTerminating
	case e.static:
		o.Status = apis.ObjectCurrent
	case e.evaluated(s), e.awaitsRead():
		result := &e.evaluation.result
		o.Status, o.Message, o.Volatile = result.Status, result.Message, result.Volatile
	case e.failure != nil:
		o.Status, o.Message = apis.ObjectUnknown, e.failure.class.readReason()
	}
}

// purpose is why an object is read.
type purpose int

const (
	noRead purpose = iota
	// forPoll means that its type cannot be watched.
	forPoll
	// forPresence means that it may exist, and the watch does not show it.
	forPresence
	// forStatus means that it is not known how ready it is.
	forStatus
	// readLater means that it counts as ready until its evaluation is due.
	readLater
)

// purpose returns why the object has to be read now, if at all. s is what is believed of it.
func (e *entry) purpose(s *snapshot, now time.Time, poll time.Duration) purpose {
	if e.failure != nil && now.Sub(e.failure.at) < min(retryAfter, poll) {
		return noRead
	}
	switch e.typ.phase {
	case polled:
		due := !e.neverCreated() || s != nil
		if e.response != nil {
			due = now.Sub(e.response.at) >= poll
		}
		if e.readAgain || due {
			return forPoll
		}
	case live:
		looked := e.response != nil && (!e.dropped || e.response.at.Equal(now))
		if s == nil && !looked && !e.neverCreated() {
			return forPresence
		}
	case missing, unresolved:
		return noRead
	}
	if s == nil || !e.readiness || e.static || e.terminating(s, now) || e.evaluated(s) {
		return noRead
	}
	if v := e.evaluation; v != nil && v.extends(s.uid, s.generation) && now.Before(v.due) {
		return readLater
	}
	return forStatus
}
