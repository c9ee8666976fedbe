package component

import (
	"regexp"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/message"
)

// facts are what a request found out about a component.
type facts struct {
	deleting, suspended bool
	// withdrawing is true if a supervisor withdraws the component, withdrawn if nothing of it is left then.
	withdrawing, withdrawn bool
	// suspends is true if a supervisor suspends the objects.
	suspends bool
	// recorded is true if objects were recorded. They are created once the records are durable.
	recorded bool
	// first is true if nothing was ever rolled out, changed if what is rolled out differs from before.
	first, changed bool
	// done is true if there is nothing left to do and to wait for.
	done bool
	// blocked is true if others use a type, or have objects in a namespace, that would be deleted.
	blocked bool
	// fenceAt is when a fence is tried again, if fences that could not be put up are all that blocks, or when a margin
	// is over, if the margins of fences are all that is waited for; else zero.
	fenceAt time.Time
	// heldUntil is when the status shows what it does not say yet; zero if there is nothing.
	heldUntil time.Time
	// contested is true if another client keeps changing an object.
	contested bool
	// empty says which objects are left as they are because the generator returned none.
	empty string
	// varies says what differs if the generator keeps returning other objects for the same input.
	varies string
	// overdue is true if the roll-out takes longer than the timeout.
	overdue bool
	// retriable is true if err says when to try again.
	retriable bool
	// unreachable is true if the cluster of the objects does not answer.
	unreachable bool
	// stalledAt is when a deletion that does not go on offers to give up the objects; zero if it does already.
	stalledAt time.Time
	// abandoning says which objects are given up with the next request.
	abandoning string
	// kept says which object is not pruned yet, and why. Each message ends with it.
	kept string
	// progress says what is waited for.
	progress string
	err      error

	// failed is true if an object could not be written although there is no error, as an auxiliary one.
	failed bool
	// unseen is true if no watch shows something that is waited for, polled if no watch shows the objects of a type,
	// unwatched if none shows any object.
	unseen, polled, unwatched bool
}

// leaving reports whether the objects are to be deleted.
func (f *facts) leaving() bool { return f.deleting || f.withdrawing }

// condition is what the status says.
type condition struct {
	state   apis.ComponentState
	reason  string
	message string
}

// row is a row of the table of states, for one situation.
type row struct {
	situation string
	holds     func(*facts) bool
	// reason is empty if the row only says when to come back. The state is then empty, and says is nil.
	state  apis.ComponentState
	reason string
	says   func(*facts) string
	// back is nil if a later row says when to come back.
	back *comeBack
}

// states is the table of states of a component. The first row that holds and has a reason decides the condition, the
// first that holds and has back decides when to come back.
var states = []row{
	{"reconciliation is suspended", func(f *facts) bool { return f.suspended && !f.deleting },
		apis.ComponentPending, ReasonSuspended, text("Reconciliation is suspended"), never},
	{"the cluster does not answer, and the objects have to go",
		func(f *facts) bool { return f.err != nil && f.unreachable && f.leaving() },
		apis.ComponentDeletionPending, ReasonUnreachable, errorText, nil},
	{"the cluster does not answer", func(f *facts) bool { return f.err != nil && f.unreachable },
		apis.ComponentPending, ReasonUnreachable, errorText, nil},
	{"an error says when to try again, and the objects have to go",
		func(f *facts) bool { return f.err != nil && f.retriable && f.leaving() },
		apis.ComponentDeletionPending, ReasonDeletionRetrying, errorText, afterRetry},
	{"an error says when to try again, and the timeout is over",
		func(f *facts) bool { return f.err != nil && f.retriable && f.overdue },
		apis.ComponentPending, ReasonTimeout, errorText, afterRetry},
	{"an error says when to try again", func(f *facts) bool { return f.err != nil && f.retriable },
		apis.ComponentPending, ReasonRetrying, errorText, afterRetry},
	{"an error, and the timeout is over", func(f *facts) bool { return f.err != nil && f.overdue && !f.deleting },
		apis.ComponentError, ReasonTimeout, errorText, byError},
	{"an error", func(f *facts) bool { return f.err != nil },
		apis.ComponentError, ReasonError, errorText, byError},
	{"the objects are given up", func(f *facts) bool { return f.abandoning != "" },
		apis.ComponentDeletionPending, ReasonAbandoned, func(f *facts) string { return f.abandoning }, atOnce},
	{"withdrawn", func(f *facts) bool { return f.withdrawn },
		apis.ComponentPending, ReasonDisabled, text("The component is disabled, and its objects are gone"), never},
	{"the objects have to go, and others use them", func(f *facts) bool { return f.leaving() && f.blocked },
		apis.ComponentDeleting, ReasonDeletionBlocked,
		func(f *facts) string { return "Deletion blocked: " + f.progress }, nil},
	{"the objects have to go", func(f *facts) bool { return f.leaving() },
		apis.ComponentDeleting, ReasonDeletionProcessing, progressOr("Waiting for the objects to go"), nil},
	{"the generator returns other objects for the same input", func(f *facts) bool { return f.varies != "" },
		apis.ComponentError, ReasonNondeterministic, func(f *facts) string { return f.varies }, nil},
	{"the generator returns no object, and there are some", func(f *facts) bool { return f.empty != "" },
		apis.ComponentError, ReasonEmptySet, func(f *facts) string { return f.empty }, nextInterval},
	{"all objects are suspended", func(f *facts) bool { return f.done && f.suspends },
		apis.ComponentPending, ReasonSuspended, text("All objects are suspended"), nil},
	{"all objects are ready", func(f *facts) bool { return f.done },
		apis.ComponentReady, ReasonReady, text("All objects are as desired, and ready"), nil},
	{"an object is contested", func(f *facts) bool { return f.contested },
		apis.ComponentError, ReasonContested, progressOr(""), nil},
	{"the timeout is over", func(f *facts) bool { return f.overdue },
		apis.ComponentError, ReasonTimeout,
		func(f *facts) string { return "Timed out: " + orElse(f.progress, "the objects are not ready") }, nil},
	{"objects are suspended", func(f *facts) bool { return f.suspends && !f.recorded },
		apis.ComponentProcessing, ReasonSuspending, progressOr("Waiting for the objects to be suspended"), nil},
	{"recorded for the first time", func(f *facts) bool { return f.recorded && f.first },
		apis.ComponentPending, ReasonFirstSeen, text("The objects are recorded"), atOnce},
	{"recorded, and others than before", func(f *facts) bool { return f.recorded && f.changed },
		apis.ComponentProcessing, ReasonRestarting, text("The objects have changed"), atOnce},
	{"an object to prune waits for others", func(f *facts) bool { return f.kept != "" },
		apis.ComponentProcessing, ReasonPruneWaits, progressOr("Waiting for the objects"), nil},
	{"under way", func(*facts) bool { return true },
		apis.ComponentProcessing, ReasonProcessing, progressOr("Waiting for the objects"), nil},
	{"done, but for what nothing shows and what the component does without",
		func(f *facts) bool { return f.done && (f.failed || f.unseen) },
		"", "", nil, backOffToInterval},
	{"done, and a type is polled", func(f *facts) bool { return f.done && f.polled }, "", "", nil, nextPoll},
	{"done", func(f *facts) bool { return f.done }, "", "", nil, nextInterval},
	{"recorded", func(f *facts) bool { return f.recorded }, "", "", nil, atOnce},
	{"fences that could not be put up are all that blocks",
		func(f *facts) bool { return f.blocked && !f.fenceAt.IsZero() && !f.polls() },
		"", "", nil, whenFenced},
	{"the margins of fences are all that is waited for",
		func(f *facts) bool { return !f.blocked && !f.fenceAt.IsZero() }, "", "", nil, whenFenced},
	{"others use what has to go", func(f *facts) bool { return f.blocked }, "", "", nil, backOffBlocked},
	{"no watch shows the progress", (*facts).polls, "", "", nil, backOff},
	{"watches show the progress", func(*facts) bool { return true }, "", "", nil, whenOverdue},
}

// polls reports whether no watch shows something that the component waits for.
func (f *facts) polls() bool { return f.unwatched || f.unseen || f.polled }

// decide returns what the status says, and when to come back, by a table of states.
func decide(table []row, f *facts) (condition, *comeBack) {
	var c condition
	var back *comeBack
	for i := range table {
		r := &table[i]
		wanted := c.reason == "" && r.reason != "" || back == nil && r.back != nil
		if !wanted || !r.holds(f) {
			continue
		}
		if c.reason == "" && r.reason != "" {
			c = condition{r.state, r.reason, r.says(f)}
		}
		if back == nil {
			back = r.back
		}
	}
	return c, back
}

// text returns a message that is always the same.
func text(message string) func(*facts) string {
	return func(*facts) string { return message }
}

// progressOr returns the message that says what is waited for, or fallback if that is not known.
func progressOr(fallback string) func(*facts) string {
	return func(f *facts) string { return orElse(message.Capitalize(f.progress), fallback) }
}

// errorText returns the message about an error.
func errorText(f *facts) string {
	return clientAddress.ReplaceAllString(message.Capitalize(execute.Summary(f.err, maxMessage)), "$1 ")
}

// clientAddress is the end of a connection that failed here. A condition with its port would change each time.
var clientAddress = regexp.MustCompile(`\b(tcp|udp) \S+:\d+->`)

// maxMessage bounds what a condition says, in bytes.
const maxMessage = 1024

func orElse(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}
