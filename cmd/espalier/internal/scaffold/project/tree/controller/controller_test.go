package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var resource = rtesting.NewFixture(&v9alpha9.Placeholder{
	//scaffold:if namespaced
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "sample-uid", Generation: 1},
	Spec:       v9alpha9.PlaceholderSpec{Image: "nginx:stable", Replicas: 2},
	//scaffold:end
	//scaffold:if cluster
	//+ObjectMeta: metav1.ObjectMeta{Name: "sample", UID: "sample-uid", Generation: 1},
	//+Spec:       v9alpha9.PlaceholderSpec{Image: "nginx:stable", Namespace: "default", Replicas: 2},
	//scaffold:end
})

// TestDeployment says all that the node does in each case. A row that passes is replayed with a fault at each of its
// requests. Write what a new row expects with "go test ./controller -rtesting.update", and read it.
func TestDeployment(t *testing.T) {
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	rtesting.NodeTests[*v9alpha9.Placeholder]{
		"it is new": {
			Resource: resource.Object(),
			ExpectCreates: []client.Object{
				rtesting.WithOptions(
					&appsv1.Deployment{
						ObjectMeta: metav1.ObjectMeta{
							Name:      "sample",
							Namespace: "default",
							Labels:    map[string]string{"app.kubernetes.io/instance": "sample", "app.kubernetes.io/name": "placeholder"},
							OwnerReferences: []metav1.OwnerReference{
								{
									APIVersion:         "group.example.test/v9alpha9",
									Kind:               "Placeholder",
									Name:               "sample",
									Controller:         new(true),
									BlockOwnerDeletion: new(true),
								},
							},
						},
						Spec: appsv1.DeploymentSpec{
							Replicas: new(int32(2)),
							Selector: &metav1.LabelSelector{
								MatchLabels: map[string]string{
									"app.kubernetes.io/instance": "sample",
									"app.kubernetes.io/name":     "placeholder",
								},
							},
							Template: corev1.PodTemplateSpec{
								ObjectMeta: metav1.ObjectMeta{
									Labels: map[string]string{
										"app.kubernetes.io/instance": "sample",
										"app.kubernetes.io/name":     "placeholder",
									},
								},
								Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:stable"}}},
							},
						},
					},
					rtesting.WriteOptions{FieldOwner: "placeholder-controller"},
				),
			},
			ExpectEvents: []rtesting.Event{
				{
					TypeMeta: metav1.TypeMeta{Kind: "Placeholder", APIVersion: "group.example.test/v9alpha9"},
					//scaffold:if namespaced
					NamespacedName: types.NamespacedName{Namespace: "default", Name: "sample"},
					//scaffold:end
					//scaffold:if cluster
					//+NamespacedName: types.NamespacedName{Name: "sample"},
					//scaffold:end
					Type:    "Normal",
					Reason:  "Created",
					Message: `Created Deployment "sample"`,
				},
			},
			ExpectResource: resource.With(func(r *v9alpha9.Placeholder) {
				r.Status.Conditions = []metav1.Condition{
					{
						Type:    "DeploymentReady",
						Status:  "False",
						Reason:  "InProgress",
						Message: "Deployment default/sample: 0 of 2 replicas available",
					},
				}
			}).Object(),
		},
	}.RunNode(t, scheme, controller.Deployment)
}
