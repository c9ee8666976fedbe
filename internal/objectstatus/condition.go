package objectstatus

import "github.com/espalier-dev/espalier/internal/content"

// Condition is one of status.conditions. A field that is missing, or is no text, is empty.
type Condition struct {
	Type, Status, Reason, Message string
	// ObservedGeneration is nil if the condition has none.
	ObservedGeneration any
}

// String says how the condition is, as in "Ready is False: Waiting: for the database".
func (c Condition) String() string {
	return withReasons(c.Type+" is "+c.Status, c.Reason, c.Message)
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

// ConditionsOf returns the conditions of an object, in their order.
func ConditionsOf(object map[string]any) []Condition {
	items, _ := content.At(object, "status", "conditions").([]any)
	conditions := make([]Condition, 0, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			text, _ := fields[name].(string)
			return text
		}
		conditions = append(conditions, Condition{
			Type:               text("type"),
			Status:             text("status"),
			Reason:             text("reason"),
			Message:            text("message"),
			ObservedGeneration: fields["observedGeneration"],
		})
	}
	return conditions
}

// condition returns the first condition with the name.
func (s *subject) condition(name string) (Condition, bool) {
	for _, c := range s.conditions {
		if c.Type == name {
			return c, true
		}
	}
	return Condition{}, false
}

// firstTrue returns the first condition with the name that is True.
func (s *subject) firstTrue(name string) (Condition, bool) {
	for _, c := range s.conditions {
		if c.Type == name && c.Status == "True" {
			return c, true
		}
	}
	return Condition{}, false
}

// has reports whether the first condition with the name has that status.
func (s *subject) has(name, status string) bool {
	c, ok := s.condition(name)
	return ok && c.Status == status
}

// number returns the integer at a path, or fallback if there is none.
func (s *subject) number(fallback int64, path ...string) int64 {
	return content.Number(s.object, fallback, path...)
}

func (s *subject) text(path ...string) string {
	return content.Text(s.object, path...)
}
