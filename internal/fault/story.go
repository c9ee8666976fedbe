package fault

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is a request of a run.
type Request struct {
	// Step is what others did just before; empty if nothing.
	Step  string
	Calls []Told
	// End says how the request ended.
	End string
}

// Told is a call as a story tells it.
type Told struct {
	// Call is all of the call, as in "create ConfigMap ns/one".
	Call string
	// Namespace and Name are those of the object; empty if there is none.
	Namespace, Name string
	// Reads is set for a call that has no effect.
	Reads bool
	// Fault is what went wrong; empty if nothing did.
	Fault Kind
	// Err is the answer, not that of a fault.
	Err error
}

// Story tells a run in one line: "get App a · create ConfigMap one · † · get App a · rest". Of each request it has the
// first call, the writes, and what went wrong. Namespaces are left out if there is one only.
func Story(requests []Request) string {
	names := shortNames(requests)
	var told []string
	for _, r := range requests {
		told = append(told, strings.Join(append(r.tell(names), r.End), " · "))
	}
	return strings.Join(repeated(told), " · ")
}

// tell returns the calls of a request that matter.
func (r Request) tell(names func(Told) string) []string {
	var told []string
	if r.Step != "" {
		told = append(told, "= "+r.Step+" =")
	}
	for i, c := range r.Calls {
		if i == 0 || !c.Reads || c.Fault != "" {
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
func (c Told) mark() string {
	switch c.Fault {
	case Fails:
		return " (fails)"
	case LosesAnswer:
		return " (answer lost)"
	case Stale:
		return " (stale)"
	case DiesBefore:
		return " (not made)"
	}
	mark := ""
	if reason := apierrors.ReasonForError(c.Err); c.Err != nil && reason != metav1.StatusReasonUnknown {
		mark = fmt.Sprintf(" (%s)", reason)
	}
	switch c.Fault {
	case Conflicts:
		return " (after a write by somebody else)" + mark
	case UserDeletes:
		return " (after the user deleted the resource)" + mark
	}
	return mark
}

// shortNames leaves the namespace out of the names of calls if there is one only.
func shortNames(requests []Request) func(Told) string {
	namespace, several := "", false
	for _, r := range requests {
		for _, c := range r.Calls {
			several = several || namespace != "" && c.Namespace != "" && c.Namespace != namespace
			if c.Namespace != "" {
				namespace = c.Namespace
			}
		}
	}
	return func(c Told) string {
		if several || c.Namespace == "" || c.Name == "" {
			return c.Call
		}
		return strings.Replace(c.Call, " "+c.Namespace+"/"+c.Name, " "+c.Name, 1)
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
