package storytellingtest

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Snapshot returns the objects of these kinds that are the story's, without what differs from one telling to the next:
// identities and times.
func Snapshot(ctx context.Context, t testing.TB, config *rest.Config, isOfStory func(metav1.Object) bool, kinds ...schema.GroupVersionKind) map[string]any {
	t.Helper()
	seen := map[string]any{}
	for _, obj := range storyObjects(ctx, t, config, isOfStory, kinds) {
		for _, field := range []string{"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", FasterAnnotation)
		if len(obj.GetAnnotations()) == 0 {
			obj.SetAnnotations(nil)
		}
		forgetIdentities(t, obj)
		seen[describe(obj)] = obj.Object
	}
	return seen
}

// forgetIdentities removes UIDs of owners, and from the status all but what conditions say.
func forgetIdentities(t testing.TB, obj unstructured.Unstructured) {
	t.Helper()
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	obj.SetOwnerReferences(owners)
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range conditions {
		for _, field := range []string{"lastTransitionTime", "observedGeneration"} {
			unstructured.RemoveNestedField(condition.(map[string]any), field)
		}
	}
	delete(obj.Object, "status")
	obj.Object["conditions"] = conditions
}

// Leftovers names the objects of these kinds that are the story's.
func Leftovers(ctx context.Context, t testing.TB, config *rest.Config, isOfStory func(metav1.Object) bool, kinds ...schema.GroupVersionKind) []string {
	t.Helper()
	var names []string
	for _, obj := range storyObjects(ctx, t, config, isOfStory, kinds) {
		names = append(names, describe(obj))
	}
	return names
}

// storyObjects returns the objects of these kinds that are the story's.
func storyObjects(ctx context.Context, t testing.TB, config *rest.Config, isOfStory func(metav1.Object) bool, kinds []schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	var objects []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list); err != nil && !isUnserved(err) {
			t.Fatal(err)
		}
		objects = append(objects, list.Items...)
	}
	return slices.DeleteFunc(objects, func(obj unstructured.Unstructured) bool { return !isOfStory(&obj) })
}

// isUnserved tells whether the definition of a kind is gone.
func isUnserved(err error) bool { return meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil }

func describe(obj unstructured.Unstructured) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
