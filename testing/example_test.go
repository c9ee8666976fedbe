package testing_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// Code that is no reconciler is called with a config made by hand.
func ExampleExpectConfig() {
	quota := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"}}
	c := rtesting.ExpectConfig{
		Scheme:       clientgoscheme.Scheme,
		GivenObjects: []client.Object{quota},
		WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap")},
		ExpectDeletes: []rtesting.DeleteRef{
			rtesting.NewDeleteRefFromObject(quota, clientgoscheme.Scheme),
		},
	}

	// This is the code under test.
	fmt.Println(c.Config().Delete(context.Background(), quota))

	// In a test this has the test's t, which fails for all that is not as expected.
	c.AssertExpectations(nil)
	// Output:
	// inducing failure for delete ConfigMap
}

// Patches are compared by what they say. How their bytes are written does not matter.
func ExampleNormalizePatch() {
	expected := rtesting.PatchRef{PatchType: types.MergePatchType, Patch: []byte(`{"spec": {"replicas": 2, "paused": true}}`)}
	actual := rtesting.PatchRef{PatchType: types.MergePatchType, Patch: []byte(`{"spec":{"paused":true,"replicas":2}}`)}
	fmt.Println("same:", rtesting.DefaultDiffer.PatchRef(expected, actual) == "")

	actual.Patch = []byte(`{"spec":{"paused":true,"replicas":3}}`)
	fmt.Println("same:", rtesting.DefaultDiffer.PatchRef(expected, actual) == "")
	// Output:
	// same: true
	// same: false
}

func ExampleStrictDiffer() {
	ready := func(since time.Time) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, LastTransitionTime: metav1.NewTime(since)},
		}}}
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	expected, actual := ready(now), ready(now.Add(-time.Hour))
	fmt.Println("same by default:", rtesting.DefaultDiffer.Resource(expected, actual) == "")
	fmt.Println("same if strict: ", rtesting.StrictDiffer.Resource(expected, actual) == "")
	// Output:
	// same by default: true
	// same if strict:  false
}

// What uses an object manager can be tested without the one that it uses in the end.
func ExampleStubObjectManager() {
	c := &rtesting.ExpectConfig{Scheme: clientgoscheme.Scheme}
	ctx := reconcilers.StashConfig(context.Background(), c.Config())
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
		Data:       map[string]string{"pods": "10"},
	}

	manager := rtesting.StubObjectManager[*corev1.ConfigMap]{}
	created, err := manager.Manage(ctx, nil, nil, desired)
	fmt.Println(created.Name, created.Data, err)
	// Output:
	// quota map[pods:10] <nil>
}
