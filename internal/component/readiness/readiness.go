// Package readiness says how ready an object of a component is: by what its status says, see [health.ReadinessOf], and
// by its settings, the hints of [generator.StatusHint] and [generator.Settings].ReadyWhen. It looks at the object only.
package readiness

import (
	"fmt"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of says how ready the object is. It does not change the object, and never fails: if a rule cannot be evaluated, the
// object is not ready, and the message says why.
//
// The first of these that applies decides:
//
//   - It is not Current by what its status says, see [health.ReadinessOf]. What a hint says that the status will have
//     counts as not observed yet.
//   - A condition that a hint names is not True: InProgress.
//   - ReadyWhen is not true: InProgress. If it is no valid expression: Failed.
//
// Otherwise it is Current.
func Of(object *unstructured.Unstructured, settings generator.Settings) Result {
	if object == nil || object.Object == nil {
		return unknown("there is no object to look at")
	}
	hinted := withHints(object, settings.StatusHint)
	result := health.ReadinessOf(hinted)
	if result.Status == apis.ObjectCurrent {
		result = hintedConditions(hinted, settings.StatusHint.Conditions)
	}
	if result.Status == apis.ObjectCurrent && settings.ReadyWhen != "" {
		result = readyWhen(settings.ReadyWhen, object)
	}
	result.Message = message.Stable(result.Message)
	return result
}

// Validate returns an error if ReadyWhen is set and is no valid expression.
func Validate(settings generator.Settings) error {
	if settings.ReadyWhen == "" {
		return nil
	}
	_, err := programOf(settings.ReadyWhen)
	return err
}

// Static reports whether an object with these settings is ready as soon as it exists: by its kind, or since it is a
// Service without a load balancer.
func Static(object *unstructured.Unstructured, settings generator.Settings) bool {
	hint, kind := settings.StatusHint, object.GroupVersionKind().GroupKind()
	serviceType, _, _ := unstructured.NestedString(object.Object, "spec", "type")
	return (health.Static(kind) || kind == kinds.Service && serviceType != "LoadBalancer") &&
		settings.ReadyWhen == "" &&
		!hint.HasObservedGeneration && !hint.HasReadyCondition && len(hint.Conditions) == 0
}

// hintedConditions demands that the conditions are True.
func hintedConditions(object *unstructured.Unstructured, names []string) Result {
	if len(names) == 0 {
		return current
	}
	conditions := content.ConditionsOf(object.Object)
	for _, name := range names {
		i := indexOf(conditions, name)
		if i < 0 {
			return inProgress(fmt.Sprintf("has no condition %s yet", name))
		}
		if conditions[i].Status != "True" {
			return inProgress(conditions[i].String())
		}
	}
	return current
}

// indexOf returns the index of the first condition of a type, or -1.
func indexOf(conditions []content.Condition, conditionType string) int {
	return slices.IndexFunc(conditions, func(c content.Condition) bool { return c.Type == conditionType })
}

// withHints returns the object with the parts of the status that a hint says it will have. It copies only the maps on
// the way there. It returns the object itself if there is nothing to add.
func withHints(object *unstructured.Unstructured, hint generator.StatusHint) *unstructured.Unstructured {
	if !hint.HasObservedGeneration && !hint.HasReadyCondition {
		return object
	}
	status, ok := object.Object["status"].(map[string]any)
	if !ok && object.Object["status"] != nil {
		// It is malformed. The rules find that.
		return object
	}
	conditions := content.ConditionsOf(object.Object)
	ready := indexOf(conditions, "Ready")

	added := map[string]any{}
	if hint.HasObservedGeneration && status["observedGeneration"] == nil {
		added["observedGeneration"] = content.NeverObserved
		if ready >= 0 && conditions[ready].ObservedGeneration != nil {
			added["observedGeneration"] = conditions[ready].ObservedGeneration
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

// Result is how ready an object is.
type Result = health.Readiness

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
