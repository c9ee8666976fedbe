package fake_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/fake"
)

func Example() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:1"}}},
	}).Build()

	fmt.Println(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "settings"}}))

	pod := &corev1.Pod{}
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, pod))
	pod.Status.Phase = corev1.PodRunning
	fmt.Println(strings.ReplaceAll(c.Update(ctx, pod).Error(), ", ", ",\n"))
	fmt.Println(c.Status().Update(ctx, pod), pod.Status.Phase)
	// Output:
	// namespaces "bank" not found
	// <nil>
	// Pod shop/web: nothing but its status was changed,
	// and an API server drops the status from this request,
	// because it is a subresource: use Status().Update or Status().Patch,
	// or build the client AsAPIServer() if the test is about that
	// <nil> Running
}
