package replay

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/fault"
)

// story tells a run in one line. Of each request it has the first call, the writes, and what went wrong.
func story(requests []*request, rested bool) string {
	names := shortNames(requests)
	var told []string
	for i, q := range requests {
		atRest := rested
		if i < len(requests)-1 {
			atRest = requests[i+1].step != ""
		}
		told = append(told, strings.Join(append(q.tell(names), q.ending(atRest)), " · "))
	}
	return strings.Join(repeated(told), " · ")
}

// tell returns the calls of a request that matter.
func (q *request) tell(names func(*call) string) []string {
	var told []string
	if q.step != "" {
		told = append(told, "= "+q.step+" =")
	}
	for i, c := range q.calls {
		if i == 0 || c.external() || c.Writes() || c.fault != "" {
			told = append(told, names(c)+c.mark())
		}
	}
	told = repeated(told)
	const most = 50
	if more := len(told) - most; more > 1 {
		told = append(told[:most], fmt.Sprintf("%d more calls", more))
	}
	return told
}

// mark says how a call went, if it did not go well.
func (c *call) mark() string {
	switch c.fault {
	case fault.Fails:
		return " (fails)"
	case fault.LosesAnswer:
		return " (answer lost)"
	case fault.Stale:
		return " (stale)"
	case fault.DiesBefore:
		return " (not made)"
	}
	mark := ""
	if reason := apierrors.ReasonForError(c.err); c.err != nil && reason != metav1.StatusReasonUnknown {
		mark = fmt.Sprintf(" (%s)", reason)
	}
	if c.fault == fault.Conflicts {
		return " (after a write by somebody else)" + mark
	}
	return mark
}

// ending says how a request ended.
func (q *request) ending(rest bool) string {
	switch {
	case q.died:
		return "†"
	case rest:
		return "rest"
	case q.err != nil:
		return "error"
	}
	if _, delay := q.outcome().next(); delay > 0 {
		return delay.String() + " later"
	}
	return "again"
}

// shortNames leaves the namespace out of the names of calls if there is one only.
func shortNames(requests []*request) func(*call) string {
	namespace, several := "", false
	for _, q := range requests {
		for _, c := range q.calls {
			several = several || namespace != "" && c.Namespace != "" && c.Namespace != namespace
			if c.Namespace != "" {
				namespace = c.Namespace
			}
		}
	}
	return func(c *call) string {
		if several || c.Namespace == "" || c.Name == "" {
			return c.name
		}
		return strings.Replace(c.name, " "+c.Namespace+"/"+c.Name, " "+c.Name, 1)
	}
}

// repeated counts what comes several times in a row.
func repeated(told []string) []string {
	var short []string
	for i := 0; i < len(told); {
		n := i + 1
		for n < len(told) && told[n] == told[i] {
			n++
		}
		text := told[i]
		if n-i > 1 {
			text = fmt.Sprintf("%d times: %s", n-i, text)
		}
		short = append(short, text)
		i = n
	}
	return short
}
