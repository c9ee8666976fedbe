package observe

import (
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// answerLimit is how long a watch may lag behind a write before it is believed all the same: resource versions go back
	// when a cluster is restored from a backup.
	answerLimit = 10 * time.Minute
	// invisibleLimit is how long the answer about an object is believed that the watch never shows.
	invisibleLimit = 10 * time.Second
	// retryAfter is how long an object is not read again that could not be read.
	retryAfter = 10 * time.Second
)

// entry is the interest of one component in one object, and what it knows of it beyond what the watch shows.
type entry struct {
	state *state
	kind  *kind
	cell  *cell
	// next is the interest of another component in the same object.
	next *entry
	name types.NamespacedName
	// round is that of the last Observe that was interested.
	round uint64

	uid types.UID
	// wanted are the settings that matter; nil if none is set.
	wanted *wanted
	// readiness: how ready it is matters. static: it is ready as soon as it exists.
	readiness, static bool
	fresh             bool
	// again: it has to be read again by name although it was read lately. Only for types that are polled.
	again bool

	// answer is what a request told last, as long as that may be newer than what the watch shows.
	answer *answer
	// going is an object that was deleted by us, and may linger.
	going *going
	// verdict is how ready it was last.
	verdict *verdict
	// failure is why it could not be read last.
	failure *failure
	// fields identifies the fields of ours in the sight fieldsOf.
	fields   string
	fieldsOf *sight
}

// wanted are the settings of an object that matter here.
type wanted struct {
	readyWhen string
	hint      component.StatusHint
	ignore    []string
}

// answer is what a request told of an object.
type answer struct {
	// sight is nil if the object did not exist.
	sight *sight
	// gone is the UID that the object had that does not exist any more; empty if not known.
	gone types.UID
	// at is the time of the request in which it was asked.
	at time.Time
}

type going struct {
	uid types.UID
	at  time.Time
}

// verdict is how ready the version of an object is.
type verdict struct {
	uid     types.UID
	version string
	result  readiness.Result
}

type failure struct {
	trouble trouble
	at      time.Time
}

// settingsOf returns the settings that matter, nil if none is set.
func settingsOf(settings *component.Settings) *wanted {
	hint := &settings.StatusHint
	if settings.ReadyWhen == "" && len(settings.IgnoreFields) == 0 &&
		!hint.HasObservedGeneration && !hint.HasReadyCondition && len(hint.Conditions) == 0 {
		return nil
	}
	return &wanted{readyWhen: settings.ReadyWhen, hint: *hint, ignore: settings.IgnoreFields}
}

func (w *wanted) equal(other *wanted) bool {
	if w == nil || other == nil {
		return w == other
	}
	return w.readyWhen == other.readyWhen && slices.Equal(w.ignore, other.ignore) &&
		w.hint.HasObservedGeneration == other.hint.HasObservedGeneration &&
		w.hint.HasReadyCondition == other.hint.HasReadyCondition && slices.Equal(w.hint.Conditions, other.hint.Conditions)
}

// set takes over what the component says of the object. first tells that the entry is new.
func (e *entry) set(in *Interest, first bool) {
	e.uid, e.readiness, e.fresh = in.UID, in.Readiness, in.Fresh
	if shown := e.cell.sight; shown != nil && shown.uid == in.UID {
		// There is no need to keep the same text twice.
		e.uid = shown.uid
	}
	wanted := settingsOf(&in.Settings)
	if !first && wanted.equal(e.wanted) {
		return
	}
	e.wanted = wanted
	e.static = readiness.Static(e.kind.GroupKind, in.Settings)
	e.verdict, e.fieldsOf = nil, nil
}

func (e *entry) is(key plan.Key) bool {
	return e.name.Name == key.Name && e.name.Namespace == key.Namespace && e.kind.Kind == key.Kind && e.kind.Group == key.Group
}

// unmade tells that nothing of ours can exist that was not seen.
func (e *entry) unmade() bool { return e.fresh && e.uid == "" }

func (e *entry) ignore() []string {
	if e.wanted == nil {
		return nil
	}
	return e.wanted.ignore
}

// believe returns the version of the object that is believed at a time, and whether it is there.
func (e *entry) believe(now time.Time) (*sight, plan.Presence) {
	k, shown := e.kind, e.cell.sight
	if a := e.answer; a != nil {
		if a.counts(k, shown, now) {
			if a.sight == nil {
				return nil, plan.Absent
			}
			return a.sight, plan.Present
		}
		e.answer = nil
	}
	switch {
	case k.phase == missing:
		return nil, plan.Absent
	case shown != nil && k.known:
		return shown, plan.Present
	case e.unmade():
		return nil, plan.Absent
	}
	// That the watch does not show it does not tell that it is not there: it may have lost its label, and the list that the watch
	// began with may be older than the object.
	return nil, plan.PresenceUnknown
}

// current tells whether what is believed is as good as the present: the watch is open, or the object was read at that time.
func (e *entry) current(now time.Time) bool {
	return e.kind.current() || e.answer != nil && e.answer.sight != nil && e.answer.at.Equal(now)
}

// counts tells whether an answer is newer than what the watch shows.
func (a *answer) counts(k *kind, shown *sight, now time.Time) bool {
	age := now.Sub(a.at)
	switch k.phase {
	case missing:
		return false
	case live:
		if a.sight == nil {
			return shown == nil || a.gone != "" && shown.uid == a.gone && age <= answerLimit
		}
		if shown != nil {
			return older(shown.version, a.sight.version) && age <= answerLimit
		}
		if a.sight.label == "" {
			return age <= invisibleLimit
		}
		order, ok := compareVersions(k.progress, a.sight.version)
		return ok && order < 0 && age <= answerLimit || !ok && age <= invisibleLimit
	case polled:
		return a.sight == nil || shown == nil || !older(a.sight.version, shown.version)
	}
	return a.sight == nil || a.sight.label != "" || age <= invisibleLimit
}

// matters tells whether it is news to the component that the watch, which showed old, now shows an object as shown, at a version.
// Nil stands for no object.
func (e *entry) matters(old, shown *sight, version string) bool {
	a := e.answer
	before := old
	if a != nil {
		switch {
		case a.sight == nil && (old == nil || old.uid == a.gone):
			before = nil
		case a.sight != nil && (old == nil || older(old.version, a.sight.version)):
			before = a.sight
		}
	}
	if shown == nil {
		return before != nil && (before == old || !older(version, before.version) && before.label != "")
	}
	switch {
	case a != nil && a.sight == nil && shown.uid == a.gone:
		return false
	case before == nil:
		return true
	case before.version == shown.version || before != old && older(shown.version, before.version):
		return false
	case !before.alike(shown):
		return true
	}
	return e.readiness && !e.static && !shown.terminating
}

// settle forgets what the watch has caught up with.
func (e *entry) settle(old, shown *sight, version string) {
	a := e.answer
	e.failure = nil
	switch {
	case shown == nil && old != nil && (old.terminating || e.going != nil && e.going.uid == old.uid):
		// It went by being deleted, not by losing the label, so there is no need to look.
		if a == nil || a.sight == nil || a.sight.uid == old.uid {
			e.answer = &answer{gone: old.uid}
		}
		e.going = nil
	case a == nil:
	case shown == nil:
		if a.sight != nil && a.sight.label != "" && !older(version, a.sight.version) {
			e.answer = nil
		}
	case a.sight == nil:
		if shown.uid != a.gone {
			e.answer = nil
		}
	case !older(shown.version, a.sight.version):
		e.answer = nil
	}
	if g := e.going; g != nil && shown != nil && (shown.uid != g.uid || shown.terminating) {
		e.going = nil
	}
}

// judged tells whether it is known how ready the version of the object is.
func (e *entry) judged(s *sight) bool {
	v := e.verdict
	return v != nil && v.uid == s.uid && v.version == s.version
}

// terminating tells whether the object is going.
func (e *entry) terminating(s *sight, now time.Time) bool {
	return s.terminating || e.going != nil && e.going.uid == s.uid && now.Sub(e.going.at) <= answerLimit
}

// unjudged tells whether the object has to be read to know how ready it is.
func (e *entry) unjudged(s *sight, now time.Time) bool {
	return e.readiness && !e.static && !e.terminating(s, now) && !e.judged(s)
}

// judge fills in how ready the object is.
func (e *entry) judge(o *plan.Observed, s *sight) {
	switch {
	case !e.readiness:
	case o.Terminating:
		o.Status = apis.ObjectTerminating
	case e.static:
		o.Status = apis.ObjectCurrent
	case e.judged(s):
		o.Status, o.Message, o.Volatile = e.verdict.result.Status, e.verdict.result.Message, e.verdict.result.Volatile
	case e.failure != nil:
		o.Status, o.Message = apis.ObjectUnknown, e.failure.trouble.reading()
	}
}

// reading tells why the object has to be read, if at all.
func (e *entry) reading(s *sight, now time.Time, poll time.Duration) purpose {
	if e.failure != nil && now.Sub(e.failure.at) < min(retryAfter, poll) {
		return nothing
	}
	switch e.kind.phase {
	case polled:
		if e.again || e.answer != nil && now.Sub(e.answer.at) >= poll || e.answer == nil && (!e.unmade() || s != nil) {
			return toPoll
		}
	case live:
		if s == nil && e.answer == nil && !e.unmade() {
			return toFind
		}
	case missing, unresolved:
		return nothing
	}
	if s != nil && e.unjudged(s, now) {
		return toJudge
	}
	return nothing
}

// purpose is what an object is read for.
type purpose int

const (
	nothing purpose = iota
	// toPoll: its type cannot be watched.
	toPoll
	// toFind: it may exist, and the watch does not show it.
	toFind
	// toJudge: how ready it is.
	toJudge
)
