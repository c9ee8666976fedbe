package component

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errChart = errors.New("no such chart")
	noon     = time.Unix(43200, 0)
)

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

// decided are facts and what is decided then. Each has facts that later rows of the table ask for, so the order of the
// rows matters.
var decided = map[string]struct {
	facts     facts
	condition condition
	status    metav1.ConditionStatus
	back      *comeBack
}{
	"suspended": {
		facts{suspended: true, recorded: true, first: true},
		condition{apis.ComponentPending, "Suspended", "Reconciliation is suspended"}, isUnknown, never,
	},
	"suspension does not hold up a deletion": {
		facts{suspended: true, deleting: true, progress: "waiting for ConfigMap a/b"},
		condition{apis.ComponentDeleting, "DeletionProcessing", "Waiting for ConfigMap a/b"}, isUnknown, whenOverdue,
	},
	"its cluster does not answer while deleting": {
		facts{err: errChart, retriable: true, unreachable: true, deleting: true},
		condition{apis.ComponentDeletionPending, "ClusterUnreachable", "No such chart"}, isUnknown, afterRetry,
	},
	"its cluster does not answer while it is withdrawn": {
		facts{err: errChart, retriable: true, unreachable: true, withdrawing: true},
		condition{apis.ComponentDeletionPending, "ClusterUnreachable", "No such chart"}, isUnknown, afterRetry,
	},
	"its cluster does not answer": {
		facts{err: errChart, retriable: true, unreachable: true, overdue: true},
		condition{apis.ComponentPending, "ClusterUnreachable", "No such chart"}, isUnknown, afterRetry,
	},
	"its cluster does not answer, and nothing says when to try again": {
		facts{err: errChart, unreachable: true},
		condition{apis.ComponentPending, "ClusterUnreachable", "No such chart"}, isUnknown, byError,
	},
	"retriable while deleting": {
		facts{err: errChart, retriable: true, overdue: true, deleting: true},
		condition{apis.ComponentDeletionPending, "DeletionRetrying", "No such chart"}, isUnknown, afterRetry,
	},
	"retriable, timed out": {
		facts{err: errChart, retriable: true, overdue: true},
		condition{apis.ComponentPending, "Timeout", "No such chart"}, isUnknown, afterRetry,
	},
	"retriable": {
		facts{err: errChart, retriable: true},
		condition{apis.ComponentPending, "Retrying", "No such chart"}, isUnknown, afterRetry,
	},
	"error, timed out": {
		facts{err: errChart, overdue: true},
		condition{apis.ComponentError, "Timeout", "No such chart"}, isFalse, byError,
	},
	"error while deleting": {
		facts{err: errChart, overdue: true, deleting: true},
		condition{apis.ComponentError, "Error", "No such chart"}, isFalse, byError,
	},
	"error": {
		facts{err: errChart, varies: "data.a differs", blocked: true, contested: true},
		condition{apis.ComponentError, "Error", "No such chart"}, isFalse, byError,
	},
	"the port of a connection is another one each time": {
		facts{err: errors.New("read tcp 10.0.0.5:43210->10.96.0.1:443: read: connection reset by peer")},
		condition{apis.ComponentError, "Error", "Read tcp 10.96.0.1:443: read: connection reset by peer"}, isFalse, byError,
	},
	"abandoned": {
		facts{abandoning: "Gave up 1 object", deleting: true, blocked: true},
		condition{apis.ComponentDeletionPending, "Abandoned", "Gave up 1 object"}, isUnknown, atOnce,
	},
	"withdrawn": {
		facts{withdrawing: true, withdrawn: true, done: true},
		condition{apis.ComponentPending, "Disabled", "The component is disabled, and its objects are gone"},
		isUnknown, never,
	},
	"deletion blocked": {
		facts{deleting: true, blocked: true, progress: "CustomResourceDefinition foos: in use by Foo a/b"},
		condition{
			apis.ComponentDeleting, "DeletionBlocked", "Deletion blocked: CustomResourceDefinition foos: in use by Foo a/b",
		}, isUnknown, backOffBlocked,
	},
	"a withdrawal is blocked": {
		facts{withdrawing: true, blocked: true, fenceAt: noon, progress: "the fence of foos"},
		condition{apis.ComponentDeleting, "DeletionBlocked", "Deletion blocked: the fence of foos"}, isUnknown, whenFenced,
	},
	"deleting": {
		facts{deleting: true, varies: "data.a differs", contested: true},
		condition{apis.ComponentDeleting, "DeletionProcessing", "Waiting for the objects to go"}, isUnknown, whenOverdue,
	},
	"deleting, and recorded": {
		facts{deleting: true, recorded: true, changed: true, unwatched: true},
		condition{apis.ComponentDeleting, "DeletionProcessing", "Waiting for the objects to go"}, isUnknown, atOnce,
	},
	"the output varies": {
		facts{varies: "data.a differs", done: true},
		condition{apis.ComponentError, "NondeterministicGenerator", "data.a differs"}, isFalse, nextInterval,
	},
	"no object is desired, and there are some": {
		facts{empty: "The generator returned no objects", overdue: true, contested: true},
		condition{apis.ComponentError, "EmptySet", "The generator returned no objects"}, isFalse, nextInterval,
	},
	"all objects are suspended": {
		facts{suspends: true, done: true},
		condition{apis.ComponentPending, "Suspended", "All objects are suspended"}, isUnknown, nextInterval,
	},
	"ready, however long it took": {
		facts{done: true, overdue: true, unwatched: true},
		condition{apis.ComponentReady, "Ready", "All objects are as desired, and ready"}, isTrue, nextInterval,
	},
	"ready, and a type is polled": {
		facts{done: true, polled: true},
		condition{apis.ComponentReady, "Ready", "All objects are as desired, and ready"}, isTrue, nextPoll,
	},
	"ready without an auxiliary object": {
		facts{done: true, failed: true, polled: true},
		condition{apis.ComponentReady, "Ready", "All objects are as desired, and ready"}, isTrue, backOffToInterval,
	},
	"ready without an auxiliary object that nothing shows": {
		facts{done: true, unseen: true, blocked: true},
		condition{apis.ComponentReady, "Ready", "All objects are as desired, and ready"}, isTrue, backOffToInterval,
	},
	"contested": {
		facts{contested: true, overdue: true, progress: "the Deployment a/b is contested"},
		condition{apis.ComponentError, "Contested", "The Deployment a/b is contested"}, isFalse, whenOverdue,
	},
	"timed out": {
		facts{overdue: true, suspends: true, progress: "wave 1 of 2: 0 of 1 ready"},
		condition{apis.ComponentError, "Timeout", "Timed out: wave 1 of 2: 0 of 1 ready"}, isFalse, whenOverdue,
	},
	"timed out, and it is not known what is waited for": {
		facts{overdue: true, recorded: true, first: true},
		condition{apis.ComponentError, "Timeout", "Timed out: the objects are not ready"}, isFalse, atOnce,
	},
	"objects are suspended": {
		facts{suspends: true, changed: true},
		condition{apis.ComponentProcessing, "Suspending", "Waiting for the objects to be suspended"},
		isUnknown, whenOverdue,
	},
	"first seen, and to be suspended": {
		facts{suspends: true, recorded: true, first: true},
		condition{apis.ComponentPending, "FirstSeen", "The objects are recorded"}, isUnknown, atOnce,
	},
	"first seen": {
		facts{recorded: true, first: true, changed: true},
		condition{apis.ComponentPending, "FirstSeen", "The objects are recorded"}, isUnknown, atOnce,
	},
	"restarting": {
		facts{recorded: true, changed: true},
		condition{apis.ComponentProcessing, "Restarting", "The objects have changed"}, isUnknown, atOnce,
	},
	"recorded again": {
		facts{recorded: true, blocked: true},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, atOnce,
	},
	"an object to prune waits for others": {
		facts{kept: "PersistentVolumeClaim a/b: it is kept", progress: "wave 1 of 2: 0 of 1 ready"},
		condition{apis.ComponentProcessing, "PruneWaits", "Wave 1 of 2: 0 of 1 ready"}, isUnknown, whenOverdue,
	},
	"recorded again, and an object to prune waits for others": {
		facts{kept: "PersistentVolumeClaim a/b: it is kept", recorded: true, changed: true},
		condition{apis.ComponentProcessing, "Restarting", "The objects have changed"}, isUnknown, atOnce,
	},
	"processing": {
		facts{progress: "wave 1 of 2: 0 of 1 ready"},
		condition{apis.ComponentProcessing, "Processing", "Wave 1 of 2: 0 of 1 ready"}, isUnknown, whenOverdue,
	},
	"processing without watches": {
		facts{unwatched: true},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, backOff,
	},
	"processing what is polled": {
		facts{polled: true},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, backOff,
	},
	"processing, and a fence comes later": {
		facts{blocked: true, fenceAt: noon},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, whenFenced,
	},
	"the margin of a fence runs": {
		facts{fenceAt: noon, unwatched: true},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, whenFenced,
	},
	"processing, and a fence comes later, but something is not watched": {
		facts{blocked: true, fenceAt: noon, unseen: true},
		condition{apis.ComponentProcessing, "Processing", "Waiting for the objects"}, isUnknown, backOffBlocked,
	},
}

func TestStates(t *testing.T) {
	for name, test := range decided {
		t.Run(name, func(t *testing.T) {
			got, back := decide(states, &test.facts)
			if got != test.condition {
				t.Errorf("the condition is %+v, want %+v", got, test.condition)
			}
			if back != test.back {
				t.Errorf("it comes back %s, want %s", back.when, test.back.when)
			}
			if status := conditionStatus(got.state); status != test.status {
				t.Errorf("the status of the condition is %s, want %s", status, test.status)
			}
		})
	}
}

// Something is decided by each row, and by none that stands behind the others.
func TestEachStateIsReachedByOrder(t *testing.T) {
	differs := func(table []row) bool {
		for _, test := range decided {
			if condition, back := decide(table, &test.facts); condition != test.condition || back != test.back {
				return true
			}
		}
		return false
	}
	for i, r := range states {
		without := slices.Delete(slices.Clone(states), i, i+1)
		if !differs(without) {
			t.Errorf("%q: nothing is decided otherwise without the row, want something", r.situation)
		}
		always := r.holds(&facts{})
		if !always && !differs(append(without, r)) {
			t.Errorf("%q: nothing is decided otherwise if the row is the last one, want something", r.situation)
		}
	}
}

// A row says both or one of two things, and whatever happens, both are decided.
func TestTableOfStatesIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range states {
		if seen[r.situation] {
			t.Errorf("%q has two rows, want one", r.situation)
		}
		seen[r.situation] = true
		if (r.reason == "") != (r.says == nil) || (r.reason == "") != (r.state == "") {
			t.Errorf("%q has the state %q and the reason %q, want a state, a reason and a message, or none",
				r.situation, r.state, r.reason)
		}
		if r.reason == "" && r.back == nil {
			t.Errorf("%q has neither a reason nor a time to come back, want one", r.situation)
		}
	}
	if c, back := decide(states, &facts{}); c.reason == "" || back == nil {
		t.Errorf("the condition without any fact is %+v, coming back %v, want both", c, back)
	}
}

func TestDelays(t *testing.T) {
	base := pace{
		now: noon, retry: 3 * time.Minute, interval: 10 * time.Minute, timeout: 8 * time.Minute,
		since: noon.Add(-time.Minute), fenceAt: noon.Add(20 * time.Second),
	}
	with := func(change func(*pace)) pace {
		p := base
		change(&p)
		return p
	}
	due := with(func(p *pace) { p.due[1] = noon.Add(2 * time.Second) })
	passed := with(func(p *pace) { p.due[0] = noon.Add(-time.Hour) })
	tried := with(func(p *pace) { p.tries = 100 })
	for name, test := range map[string]struct {
		back *comeBack
		pace pace
		want time.Duration
	}{
		"never":                            {never, due, 0},
		"by the error":                     {byError, due, 0},
		"at once":                          {atOnce, passed, time.Millisecond},
		"retry interval":                   {afterRetry, due, 3 * time.Minute},
		"what the error asks for":          {afterRetry, with(func(p *pace) { p.retryAfter = new(time.Hour) }), time.Hour},
		"the error asks for nothing":       {afterRetry, with(func(p *pace) { p.retryAfter = new(time.Duration(0)) }), 3 * time.Minute},
		"interval":                         {nextInterval, base, 10 * time.Minute},
		"interval, due before":             {nextInterval, due, 2 * time.Second},
		"interval, due long ago":           {nextInterval, passed, time.Second},
		"poll":                             {nextPoll, base, pollInterval},
		"poll, short interval":             {nextPoll, with(func(p *pace) { p.interval = time.Second }), time.Second},
		"poll, due before":                 {nextPoll, due, 2 * time.Second},
		"auxiliary, first":                 {backOffToInterval, base, 50 * time.Millisecond},
		"auxiliary, at last":               {backOffToInterval, tried, 10 * time.Minute},
		"auxiliary, due before":            {backOffToInterval, with(func(p *pace) { p.tries, p.due = 100, due.due }), 2 * time.Second},
		"auxiliary, no interval":           {backOffToInterval, with(func(p *pace) { p.tries, p.interval = 30, 0 }), time.Second},
		"back-off, first":                  {backOff, due, 50 * time.Millisecond},
		"back-off, at last":                {backOff, tried, pollInterval},
		"blocked, first":                   {backOffBlocked, due, 1050 * time.Millisecond},
		"blocked, at last":                 {backOffBlocked, tried, pollInterval + time.Second},
		"fence":                            {whenFenced, base, 20 * time.Second},
		"fence, due before":                {whenFenced, due, 2 * time.Second},
		"fence, long ago":                  {whenFenced, with(func(p *pace) { p.fenceAt = noon.Add(-time.Hour) }), time.Second},
		"timeout":                          {whenOverdue, base, 7 * time.Minute},
		"timeout, short interval":          {whenOverdue, with(func(p *pace) { p.interval = time.Minute }), time.Minute},
		"timeout, due before":              {whenOverdue, due, 2 * time.Second},
		"timeout is over":                  {whenOverdue, with(func(p *pace) { p.timeout = time.Second }), 10 * time.Minute},
		"nothing is timed, as in deletion": {whenOverdue, with(func(p *pace) { p.since = time.Time{} }), 10 * time.Minute},
	} {
		if got := test.back.delay(&test.pace); got != test.want {
			t.Errorf("%s: the delay is %v, want %v", name, got, test.want)
		}
	}
}
