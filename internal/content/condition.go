package content

import "github.com/espalier-dev/espalier/internal/message"

// Condition is one of status.conditions. A field that is missing, or is no text, is empty.
type Condition struct {
	Type, Status, Reason, Message string
	// ObservedGeneration is nil if the condition has none.
	ObservedGeneration any
}

// String says how the condition is, as in "Ready is False: Waiting: for the database".
func (c Condition) String() string {
	return message.WithReasons(c.Type+" is "+c.Status, c.Reason, c.Message)
}

// ConditionsOf returns the conditions of an object, in their order.
func ConditionsOf(object map[string]any) []Condition {
	items, _ := At(object, "status", "conditions").([]any)
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
