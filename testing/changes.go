package testing

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"
)

// IsTrue returns a change that sets a condition to True, for [Fixture.With]. The message is empty unless it is given.
// Like [reconcilers.SetCondition] it changes no other condition, also if the type has a condition that sums them up.
//
// Go does not infer the type of the result, so a test binds it once:
//
//	var isTrue, isFalse = rtesting.IsTrue[*v1.Shop], rtesting.IsFalse[*v1.Shop]
//	...
//	ExpectResource: shop.With(isTrue("DeploymentReady", "Ready")).Object(),
//
// The change panics for an object without a field Status.Conditions of type []metav1.Condition.
func IsTrue[Type client.Object](conditionType, reason string, message ...string) func(Type) {
	return is[Type](conditionType, metav1.ConditionTrue, reason, message)
}

// IsFalse is [IsTrue] for the status False.
func IsFalse[Type client.Object](conditionType, reason string, message ...string) func(Type) {
	return is[Type](conditionType, metav1.ConditionFalse, reason, message)
}

// IsUnknown is [IsTrue] for the status Unknown.
func IsUnknown[Type client.Object](conditionType, reason string, message ...string) func(Type) {
	return is[Type](conditionType, metav1.ConditionUnknown, reason, message)
}

func is[Type client.Object](
	conditionType string, status metav1.ConditionStatus, reason string, message []string,
) func(Type) {
	return func(obj Type) {
		mustHaveConditions(obj)
		reconcilers.SetCondition(context.Background(), obj, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: strings.Join(message, ""),
		})
	}
}

// Initialized adds the conditions that the InitializeConditions method of the status adds, as a root does before its
// nodes run. Pass it to [Fixture.With].
func Initialized[Type client.Object](obj Type) {
	statusfield.Of(obj).InitializeConditions(context.Background())
}

// Observed sets the observed generation of the status and of its conditions to the generation of the object, as a root
// leaves it. Pass it to [Fixture.With], after the changes of conditions.
func Observed[Type client.Object](obj Type) {
	status := statusfield.Of(obj)
	status.SetObservedGeneration(obj.GetGeneration())
	conditions := status.GetConditions()
	for i := range conditions {
		conditions[i].ObservedGeneration = obj.GetGeneration()
	}
	status.SetConditions(conditions)
}

// terminatingSince is when objects of tests are deleted.
var terminatingSince = metav1.NewTime(time.Unix(2000, 0))

// Terminating returns a change that makes an object one that is being deleted and that finalizers keep, for
// [Fixture.With]. The given finalizers take the place of those of the object, unless there are none. An object that is
// being deleted must have one.
func Terminating[Type client.Object](finalizers ...string) func(Type) {
	return func(obj Type) {
		obj.SetDeletionTimestamp(terminatingSince.DeepCopy())
		if len(finalizers) > 0 {
			obj.SetFinalizers(finalizers)
		}
	}
}

func mustHaveConditions(obj client.Object) {
	if !statusfield.Of(obj).HasConditions() {
		panic(fmt.Sprintf("%T has no field Status.Conditions of type []metav1.Condition", obj))
	}
}
