package readiness

import (
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/component"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is one of status.conditions.
type condition struct {
	name, status, reason, message string
	// observed is its own observedGeneration, nil if it has none.
	observed any
}

// String says how the condition is, as in "Ready is False: Waiting: for the database".
func (c condition) String() string {
	return because(c.name+" is "+c.status, c.reason, c.message)
}

// because appends those reasons that are not empty.
func because(what string, reasons ...string) string {
	for _, reason := range reasons {
		if reason != "" {
			what += ": " + reason
		}
	}
	return what
}

// condition returns the first condition of the name.
func (s *subject) condition(name string) (condition, bool) {
	for _, c := range s.conditions {
		if c.name == name {
			return c, true
		}
	}
	return condition{}, false
}

// is tells whether the condition of the name is there with that status.
func (s *subject) is(name, status string) bool {
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

// field returns what is at a path, nil if there is nothing.
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

func conditionsOf(object map[string]any) []condition {
	items, _ := field(object, "status", "conditions").([]any)
	if len(items) == 0 {
		return nil
	}
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

// neverObserved is the observed generation of an object that has none, and should.
const neverObserved = int64(-1)

// withHints returns the object with what a hint says that its status will have. It copies no more than the way there, and
// nothing if there is nothing to add.
func withHints(object *unstructured.Unstructured, hint component.StatusHint) *unstructured.Unstructured {
	if !hint.HasObservedGeneration && !hint.HasReadyCondition {
		return object
	}
	status, ok := object.Object["status"].(map[string]any)
	if !ok && object.Object["status"] != nil {
		// It is malformed, which the rules find.
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
	filled := maps.Clone(object.Object)
	merged := make(map[string]any, len(status)+len(added))
	maps.Copy(merged, status)
	maps.Copy(merged, added)
	filled["status"] = merged
	return &unstructured.Unstructured{Object: filled}
}
