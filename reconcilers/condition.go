package reconcilers

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionKeeper sets conditions one by one. It sums up nothing.
var conditionKeeper = apis.NewLivingConditionSet()

// SetCondition stores a condition in the status of resource, in memory, in place of the one of its type. The status is
// any field Status with Conditions of type []metav1.Condition, or the status of an unstructured object. Without
// conditions it does nothing.
//
// The transition time is the time of the request, and moves only if the status of the condition changes. The observed
// generation is the generation of the request. Conditions are kept sorted by type.
func SetCondition(ctx context.Context, resource client.Object, condition metav1.Condition) {
	conditionKeeper.ManageWithContext(ctx, statusfield.Of(resource)).SetCondition(condition)
}

// RemoveCondition removes the condition of that type from the status of resource, in memory.
func RemoveCondition(resource client.Object, conditionType string) {
	status := statusfield.Of(resource)
	conditions := slices.Clone(status.GetConditions())
	if meta.RemoveStatusCondition(&conditions, conditionType) {
		status.SetConditions(conditions)
	}
}

// GetCondition returns a copy of the condition of that type from the status of resource, or nil if there is none.
func GetCondition(resource client.Object, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(statusfield.Of(resource).GetConditions(), conditionType).DeepCopy()
}
