package health_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/health"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ExampleSuspensions() {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}
	var rules health.Suspensions
	fmt.Println(rules.Of(deployment).State)

	remove, err := rules.Suspend(deployment)
	fmt.Println(remove, err, *deployment.Spec.Replicas)

	h := rules.Of(deployment)
	fmt.Println(h.State, h.Message)

	deployment.Status.ObservedGeneration = 1
	fmt.Println(rules.Of(deployment).State)
	// Output:
	// PendingSuspension
	// false <nil> 0
	// Suspending has not been observed yet
	// Suspended
}
