// Package objectstatus says how an object is by what its status says. It applies kstatus, and rules of its own for
// kinds where kstatus is wrong. It looks at the object only.
//
// An object without a status is ready unless a rule of its kind says otherwise, since many kinds never have one. The
// same holds for a custom resource that its controller has not observed yet.
package objectstatus

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/message"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Result is how ready an object is.
type Result struct {
	Status apis.ObjectStatus
	// Message says in a stable text of limited length why the object is not Current. It is empty if the object is
	// Current.
	Message string
	// Volatile reports whether the object waits for another one, of the same wave or a later one, see plan.Observed.
	Volatile bool
}

// Of says how the object is. It does not change the object, and never fails. The first of these that applies decides:
//
//   - It is being deleted: Terminating.
//   - Its generation has not been observed, or a condition Reconciling is True: InProgress.
//   - A condition Stalled is True: Failed.
//   - The rule of its kind says that it is not Current; for kinds without a rule, its condition Ready says so.
//
// Otherwise it is Current. If the status does not have the form that the rules expect, the result is Unknown.
func Of(object *unstructured.Unstructured) Result {
	s := &subject{
		object:     object,
		kind:       object.GroupVersionKind().GroupKind(),
		conditions: ConditionsOf(object.Object),
	}
	result, decided := s.generalRules()
	if !decided {
		result = s.kindRules()
	}
	result.Message = StableMessage(result.Message)
	return result
}

// subject is an object with what its hints add, and what most rules look at.
type subject struct {
	object     *unstructured.Unstructured
	kind       schema.GroupKind
	conditions []Condition
}

// generalRules are the same for all kinds. kstatus has these rules too, but does not say which of them applied.
func (s *subject) generalRules() (result Result, decided bool) {
	if s.text("metadata", "deletionTimestamp") != "" {
		return Result{Status: apis.ObjectTerminating, Message: "is being deleted"}, true
	}
	generation, known := content.Field(s.object, "metadata", "generation").(int64)
	observed, reported := content.Field(s.object, "status", "observedGeneration").(int64)
	if known && reported && observed != generation {
		text := fmt.Sprintf("generation %d, observed %d", generation, observed)
		if observed == NeverObserved {
			text = fmt.Sprintf("generation %d", generation)
		}
		return inProgress("has not been observed yet (" + text + ")"), true
	}
	// Reconciling comes first, in any order of the conditions: what is still tried has not failed.
	if c, ok := s.firstTrue(string(status.ConditionReconciling)); ok {
		return inProgress(withReasons(c.Type, c.Reason, c.Message)), true
	}
	if c, ok := s.firstTrue(string(status.ConditionStalled)); ok {
		return failed(withReasons(c.Type, c.Reason, c.Message)), true
	}
	return Result{}, false
}

// NeverObserved is the observed generation of an object that will have one and has none yet.
const NeverObserved = int64(-1)

var current = Result{Status: apis.ObjectCurrent}

func inProgress(message string) Result {
	return Result{Status: apis.ObjectInProgress, Message: message}
}

func failed(message string) Result {
	return Result{Status: apis.ObjectFailed, Message: message}
}

func unknown(message string) Result {
	return Result{Status: apis.ObjectUnknown, Message: message}
}

// maxMessage is the length of the longest message, in bytes.
const maxMessage = 200

// unstableParts are parts of messages of others that are different each time: times and UIDs.
var unstableParts = regexp.MustCompile(
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*( m=[+-][\d.]+)?` +
		`|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// StableMessage makes one line of limited length of a message. The line is the same each time that the same happens.
func StableMessage(text string) string {
	// The limit is applied to the result. The rest of a very long text cannot get into it.
	text = strings.ToValidUTF8(text[:min(len(text), 4*maxMessage)], "")
	if strings.Count(text, "-") >= 2 {
		text = unstableParts.ReplaceAllLiteralString(text, "…")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	return message.Truncate(strings.Join(strings.Fields(text), " "), maxMessage)
}
