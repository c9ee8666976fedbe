package feature

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event is what a request finds out about a feature.
type event string

const (
	gateFails           event = "the gate returns an error, or so does Suspended"
	withdrawalFails     event = "the gate is off, and an error is returned or reported"
	withdraws           event = "the gate is off, and an object is left, or it is not known whether one is"
	withdrawn           event = "the gate is off, and nothing is left"
	prerequisiteMissing event = "the prerequisites were not passed yet, and one is not met or returns an error"
	suspensionFails     event = "suspended, and an error is returned or reported"
	suspensionPending   event = "suspended, and an object was not told so yet"
	suspends            event = "suspended, and an object still runs"
	suspensionUnknown   event = "suspended, and a node halted, so that not all objects are known"
	suspended           event = "suspended, and nothing runs"
	fails               event = "an error is returned or reported"
	becomesHealthy      event = "all required objects are healthy"
	gradedDown          event = "the grace period is over, and the worst object means Down"
	gradedDegraded      event = "the grace period is over, and the worst object means Degraded"
	notReported         event = "a node halted, so that not all objects are known"
	notGraded           event = "the grace period is over, and nothing is broken, as while a Job runs"
	notHealthy          event = "a required object is not healthy"
)

// transition is a row of the state machine of a feature.
type transition struct {
	event event
	// from are the phases in which the event can occur; nil for all.
	from   []apis.FeaturePhase
	status metav1.ConditionStatus
	// reason is empty for the most important state of the objects.
	reason apis.State
	// phase is the phase afterwards; empty if it stays.
	phase apis.FeaturePhase
	// passed says whether the prerequisites count as passed afterwards; nil if that stays.
	passed *bool
	// requeues is true if the request comes back when the grace period ends.
	requeues bool
}

// phases are all phases. A feature without a record is in the first one.
var phases = []apis.FeaturePhase{
	apis.FeatureWaiting, apis.FeatureProgressing, apis.FeatureHealthy, apis.FeatureSuspended, apis.FeatureDisabled,
}

var (
	passes = new(true)
	rearms = new(false)

	inGrace = []apis.FeaturePhase{apis.FeatureProgressing}
)

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

// machine is the state machine of a feature. Each event has one row. The first event that happened counts.
var machine = []transition{
	{gateFails, nil, isFalse, apis.StateFeatureGateError, "", nil, false},
	{withdrawalFails, nil, isFalse, apis.StateError, apis.FeatureDisabled, rearms, false},
	{withdraws, nil, isFalse, apis.StateDisabling, apis.FeatureDisabled, rearms, false},
	{withdrawn, nil, isTrue, apis.StateDisabled, apis.FeatureDisabled, rearms, false},
	{prerequisiteMissing, nil, isFalse, apis.StatePrerequisiteNotMet, apis.FeatureWaiting, rearms, false},
	{suspensionFails, nil, isFalse, apis.StateError, apis.FeatureSuspended, passes, false},
	{suspensionPending, nil, isFalse, apis.StatePendingSuspension, apis.FeatureSuspended, passes, false},
	{suspends, nil, isFalse, apis.StateSuspending, apis.FeatureSuspended, passes, false},
	{suspensionUnknown, nil, isUnknown, apis.StateUnknown, apis.FeatureSuspended, passes, false},
	{suspended, nil, isTrue, apis.StateSuspended, apis.FeatureSuspended, passes, false},
	{fails, nil, isFalse, apis.StateError, apis.FeatureProgressing, passes, false},
	{becomesHealthy, nil, isTrue, apis.StateHealthy, apis.FeatureHealthy, passes, false},
	{gradedDown, inGrace, isFalse, apis.StateDown, apis.FeatureProgressing, passes, false},
	{gradedDegraded, inGrace, isFalse, apis.StateDegraded, apis.FeatureProgressing, passes, false},
	{notReported, nil, isUnknown, apis.StateUnknown, apis.FeatureProgressing, passes, true},
	{notGraded, inGrace, isFalse, "", apis.FeatureProgressing, passes, false},
	{notHealthy, nil, isFalse, "", apis.FeatureProgressing, passes, true},
}

// Table returns the state machine of a feature as a table in Markdown. What happens in a request and the phase that the
// request finds decide the condition, the phase afterwards, and whether the request comes back.
func Table() string {
	var b strings.Builder
	b.WriteString("| phase | event | condition | reason | phase afterwards | prerequisites | comes back |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, t := range machine {
		from := "any"
		if t.from != nil {
			from = joinPhases(t.from)
		}
		passed, requeue := "as before", ""
		if t.passed != nil && *t.passed {
			passed = "passed"
		} else if t.passed != nil {
			passed = "asked again"
		}
		if t.requeues {
			requeue = "when the grace period ends"
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", from, t.event, t.status,
			cmp.Or(string(t.reason), "that of the worst object"), cmp.Or(string(t.phase), "as before"), passed, requeue)
	}
	return b.String()
}

func joinPhases(phases []apis.FeaturePhase) string {
	var names []string
	for _, phase := range phases {
		names = append(names, string(phase))
	}
	return strings.Join(names, ", ")
}
