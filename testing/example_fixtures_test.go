package testing_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

// withName returns a change of an object of any kind.
func withName[T client.Object](name string) func(T) {
	return func(obj T) { obj.SetName(name) }
}

// runs returns a change of a Deployment.
func runs(image string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
}

// available is what a cluster makes of a Deployment.
func available(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}
}

// Fixtures of the kinds that the tests of an operator share, and their changes, are a package of the operator: a
// variable for each kind, and functions that combine.
func ExampleFixture_With() {
	labels := map[string]string{"app": "web"}
	deployment := rtesting.NewFixture(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	})

	shop := deployment.With(withName[*appsv1.Deployment]("shop"), runs("shop:2"), available).Object()
	fmt.Println(shop.Name, shop.Spec.Template.Spec.Containers[0].Image, shop.Status.Conditions[0].Status)
	fmt.Println(deployment.GetName())
	// Output:
	// shop shop:2 True
	// web
}
