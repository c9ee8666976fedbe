package answer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxValue is how long a value may be, in bytes.
const maxValue = 4096

// At returns the text of the field that a path leads to, and false if there is none, or none that is a value.
func At(object *unstructured.Unstructured, path []string) (string, bool) {
	var text string
	switch value := content.At(object.Object, path...).(type) {
	case string:
		text = value
	case bool:
		text = strconv.FormatBool(value)
	case int64:
		text = strconv.FormatInt(value, 10)
	case float64:
		text = strconv.FormatFloat(value, 'g', -1, 64)
	default:
		return "", false
	}
	return text, len(text) <= maxValue
}

// Of says how an object is.
func (h *Health) Of(object *unstructured.Unstructured) apis.Health {
	found := apis.Health{State: apis.StateHealthy}
	for name, path := range h.Attributes {
		if value, is := At(object, path); is {
			if found.Attributes == nil {
				found.Attributes = map[string]string{}
			}
			found.Attributes[name] = message.Stable(value)
		}
	}
	if text, reason, ready := h.judge(object); !ready {
		found.State, found.Grade, found.Reason, found.Message = apis.StateUpdating, apis.StateDegraded, h.Reason, text
		if h.Reason == "" {
			found.Reason = reason
		}
	}
	return found
}

// judge says whether an object is ready and, if not, why.
func (h *Health) judge(object *unstructured.Unstructured) (text, reason string, ready bool) {
	if h.Condition == "" {
		value, _ := At(object, h.Path)
		path := message.Truncate(strings.Join(h.Path, "."), maxQuoted)
		return fmt.Sprintf("%s is %s, and not %s", path, quote(value), quote(h.Value)), "", value == h.Value
	}
	for _, condition := range content.ConditionsOf(object.Object) {
		switch {
		case condition.Type != h.Condition:
		case condition.Status != "True":
			return message.Stable(condition.Message), condition.Reason, false
		case content.Field(object, "status", "observedGeneration") != nil && !content.Observed(object):
			return "its status is that of an earlier generation", "", false
		default:
			return "", "", true
		}
	}
	return fmt.Sprintf("there is no condition %s", quote(h.Condition)), "", false
}
