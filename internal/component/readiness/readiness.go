// Package readiness says how ready an object is. It applies kstatus, the settings of the object, and rules of its own
// for kinds where kstatus is wrong. It looks at the object only.
//
// An object without a status is ready unless a rule of its kind says otherwise, since many kinds never have one. The
// same holds for a custom resource that its controller has not observed yet. For such kinds there are the hints of
// [component.StatusHint], and [component.Settings].ReadyWhen.
package readiness

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
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

// Of says how ready the object is. It does not change the object, and never fails: if a rule cannot be evaluated, the
// object is not ready, and the message says why.
//
// The first of these that applies decides:
//
//   - It is being deleted: Terminating.
//   - Its generation has not been observed, or a condition Reconciling is True: InProgress.
//   - A condition Stalled is True: Failed.
//   - The rule of its kind says that it is not Current; for kinds without a rule, its condition Ready says so.
//   - A condition that a hint names is not True: InProgress.
//   - ReadyWhen is not true: InProgress. If it is no valid expression: Failed.
//
// Otherwise it is Current. If the status does not have the form that the rules expect, the result is Unknown.
func Of(object *unstructured.Unstructured, settings component.Settings) Result {
	if object == nil || object.Object == nil {
		return unknown("there is no object to look at")
	}
	hinted := withHints(object, settings.StatusHint)
	s := &subject{
		object:     hinted,
		kind:       hinted.GroupVersionKind().GroupKind(),
		conditions: conditionsOf(hinted.Object),
	}
	result, decided := s.generalRules()
	if !decided {
		result = s.kindRules()
	}
	if result.Status == apis.ObjectCurrent {
		result = s.hintedConditions(settings.StatusHint.Conditions)
	}
	if result.Status == apis.ObjectCurrent && settings.ReadyWhen != "" {
		result = readyWhen(settings.ReadyWhen, object)
	}
	result.Message = stableMessage(result.Message)
	return result
}

// Validate returns an error if ReadyWhen is set and is no valid expression.
func Validate(settings component.Settings) error {
	if settings.ReadyWhen == "" {
		return nil
	}
	_, err := programOf(settings.ReadyWhen)
	return err
}

// Static reports whether all objects of the kind, with these settings, are ready as soon as they exist.
func Static(kind schema.GroupKind, settings component.Settings) bool {
	hint := settings.StatusHint
	return staticKinds[kind] &&
		settings.ReadyWhen == "" &&
		!hint.HasObservedGeneration && !hint.HasReadyCondition && len(hint.Conditions) == 0
}

// subject is an object with what its hints add, and what most rules look at.
type subject struct {
	object     *unstructured.Unstructured
	kind       schema.GroupKind
	conditions []condition
}

// generalRules are the same for all kinds. kstatus has these rules too, but does not say which of them applied.
func (s *subject) generalRules() (result Result, decided bool) {
	if s.text("metadata", "deletionTimestamp") != "" {
		return Result{Status: apis.ObjectTerminating, Message: "is being deleted"}, true
	}
	generation, known := field(s.object.Object, "metadata", "generation").(int64)
	observed, reported := field(s.object.Object, "status", "observedGeneration").(int64)
	if known && reported && observed != generation {
		text := fmt.Sprintf("generation %d, observed %d", generation, observed)
		if observed == neverObserved {
			text = fmt.Sprintf("generation %d", generation)
		}
		return inProgress("has not been observed yet (" + text + ")"), true
	}
	// Reconciling comes first, in any order of the conditions: what is still tried has not failed.
	if c, ok := s.firstTrue(string(status.ConditionReconciling)); ok {
		return inProgress(withReasons(c.name, c.reason, c.message)), true
	}
	if c, ok := s.firstTrue(string(status.ConditionStalled)); ok {
		return failed(withReasons(c.name, c.reason, c.message)), true
	}
	return Result{}, false
}

// hintedConditions demands that the conditions are True.
func (s *subject) hintedConditions(names []string) Result {
	for _, name := range names {
		if c, ok := s.condition(name); !ok {
			return inProgress(fmt.Sprintf("has no condition %s yet", name))
		} else if c.status != "True" {
			return inProgress(c.String())
		}
	}
	return current
}

// condition is one of status.conditions.
type condition struct {
	name, status, reason, message string
	// observed is its own observedGeneration, nil if it has none.
	observed any
}

// String says how the condition is, as in "Ready is False: Waiting: for the database".
func (c condition) String() string {
	return withReasons(c.name+" is "+c.status, c.reason, c.message)
}

// withReasons appends the reasons that are not empty.
func withReasons(text string, reasons ...string) string {
	for _, reason := range reasons {
		if reason != "" {
			text += ": " + reason
		}
	}
	return text
}

func conditionsOf(object map[string]any) []condition {
	items, _ := field(object, "status", "conditions").([]any)
	conditions := make([]condition, 0, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			text, _ := fields[name].(string)
			return text
		}
		conditions = append(conditions, condition{
			name:     text("type"),
			status:   text("status"),
			reason:   text("reason"),
			message:  text("message"),
			observed: fields["observedGeneration"],
		})
	}
	return conditions
}

// condition returns the first condition with the name.
func (s *subject) condition(name string) (condition, bool) {
	for _, c := range s.conditions {
		if c.name == name {
			return c, true
		}
	}
	return condition{}, false
}

// firstTrue returns the first condition with the name that is True.
func (s *subject) firstTrue(name string) (condition, bool) {
	for _, c := range s.conditions {
		if c.name == name && c.status == "True" {
			return c, true
		}
	}
	return condition{}, false
}

// has reports whether the first condition with the name has that status.
func (s *subject) has(name, status string) bool {
	c, ok := s.condition(name)
	return ok && c.status == status
}

// number returns the integer at a path, or fallback if there is none.
func (s *subject) number(fallback int64, path ...string) int64 {
	if n, ok := field(s.object.Object, path...).(int64); ok {
		return n
	}
	return fallback
}

func (s *subject) text(path ...string) string {
	text, _ := field(s.object.Object, path...).(string)
	return text
}

// field returns the value at a path, nil if there is none.
func field(object map[string]any, path ...string) any {
	var value any = object
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

// neverObserved is the observed generation of an object that has none, although its hint says that it will have one.
const neverObserved = int64(-1)

// withHints returns the object with the parts of the status that a hint says it will have. It copies only the maps on
// the way there. It returns the object itself if there is nothing to add.
func withHints(object *unstructured.Unstructured, hint component.StatusHint) *unstructured.Unstructured {
	if !hint.HasObservedGeneration && !hint.HasReadyCondition {
		return object
	}
	status, ok := object.Object["status"].(map[string]any)
	if !ok && object.Object["status"] != nil {
		// It is malformed. The rules find that.
		return object
	}
	conditions := conditionsOf(object.Object)
	ready := slices.IndexFunc(conditions, func(c condition) bool { return c.name == "Ready" })

	added := map[string]any{}
	if hint.HasObservedGeneration && status["observedGeneration"] == nil {
		added["observedGeneration"] = neverObserved
		if ready >= 0 && conditions[ready].observed != nil {
			added["observedGeneration"] = conditions[ready].observed
		}
	}
	if hint.HasReadyCondition && ready < 0 {
		if items, ok := status["conditions"].([]any); ok || status["conditions"] == nil {
			added["conditions"] = append(slices.Clip(items), map[string]any{
				"type": "Ready", "status": "Unknown", "message": "not reported yet",
			})
		}
	}
	if len(added) == 0 {
		return object
	}
	merged := make(map[string]any, len(status)+len(added))
	maps.Copy(merged, status)
	maps.Copy(merged, added)
	filled := maps.Clone(object.Object)
	filled["status"] = merged
	return &unstructured.Unstructured{Object: filled}
}

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

// stableMessage makes one line of limited length of a message. The line is the same each time that the same happens.
func stableMessage(text string) string {
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
