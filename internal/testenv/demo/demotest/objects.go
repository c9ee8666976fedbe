package demotest

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// Objects selects the objects of a scenario: objects of the kinds, with one of the parts in their name or namespace.
type Objects struct {
	Kinds []schema.GroupVersionKind
	Parts []string
}

// Snapshot returns the objects by name, without the fields that differ from run to run, such as UIDs and times, and
// without the given fields.
func (o Objects) Snapshot(t testing.TB, config *rest.Config, without ...[]string) map[string]any {
	t.Helper()
	seen := map[string]any{}
	for _, obj := range o.read(t, config) {
		for _, field := range []string{"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		for _, annotation := range []string{FasterAnnotation, demo.TouchedAnnotation} {
			unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", annotation)
		}
		ip, _, err := unstructured.NestedString(obj.Object, "spec", "clusterIP")
		if err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "Service" && ip != corev1.ClusterIPNone { // An API server may draw the addresses.
			unstructured.RemoveNestedField(obj.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(obj.Object, "spec", "clusterIPs")
		}
		for _, field := range without {
			unstructured.RemoveNestedField(obj.Object, field...)
		}
		if len(obj.GetAnnotations()) == 0 {
			obj.SetAnnotations(nil)
		}
		owners := obj.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = ""
		}
		obj.SetOwnerReferences(owners)
		// Of the status, only conditions are the same in each run.
		conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range conditions {
			delete(condition.(map[string]any), "lastTransitionTime")
			delete(condition.(map[string]any), "observedGeneration")
		}
		delete(obj.Object, "status")
		obj.Object["conditions"] = conditions
		seen[nameOf(obj)] = obj.Object
	}
	return seen
}

// Names returns a name for each object.
func (o Objects) Names(t testing.TB, config *rest.Config) []string {
	t.Helper()
	var names []string
	for _, obj := range o.read(t, config) {
		names = append(names, nameOf(obj))
	}
	return names
}

// AreGone fails the test if one of the objects exists.
func (o Objects) AreGone(t testing.TB, config *rest.Config) {
	t.Helper()
	if left := o.Names(t, config); len(left) > 0 {
		t.Errorf("the cluster has %q, want nothing left behind", left)
	}
}

func (o Objects) read(t testing.TB, config *rest.Config) []unstructured.Unstructured {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	var objects []unstructured.Unstructured
	for _, kind := range o.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		// The context of the test may have ended: this is also called when it cleans up.
		if err := c.List(context.WithoutCancel(t.Context()), list); err != nil && !demo.IsGone(err) {
			t.Fatal(err)
		}
		objects = append(objects, list.Items...)
	}
	return slices.DeleteFunc(objects, func(obj unstructured.Unstructured) bool {
		return !slices.ContainsFunc(o.Parts, func(part string) bool {
			return strings.Contains(obj.GetNamespace(), part) || strings.Contains(obj.GetName(), part)
		})
	})
}

func nameOf(obj unstructured.Unstructured) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
