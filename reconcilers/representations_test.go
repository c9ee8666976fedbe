package reconcilers_test

import (
	"context"
	"maps"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A resource may be typed, unstructured, or a duck; a child typed or unstructured. The scenarios of this file and of its neighbours do
// not know which: they are methods of a representation, and each test runs one of them for all representations.

// representation is how the Go code of a scenario sees Widgets.
type representation[T client.Object] struct {
	// empty and list are what goes into fields called Type and ListType.
	empty func() T
	// of is a Widget as the scenario sees it.
	of func(*resources.Widget) T
	// color reads a field of the spec.
	color func(T) string
	// mark sets a field of the status.
	mark func(resource T, value string)
	// watched is what a watch of them is for.
	watched client.Object
	// patched tells that the status is written by a patch.
	patched bool
}

// childRepresentation is how the Go code of a scenario sees ConfigMaps.
type childRepresentation[CT client.Object, CL client.ObjectList] struct {
	empty func() CT
	list  func() CL
	of    func(*corev1.ConfigMap) CT
	// color reads the data.
	color func(CT) string
	// merge is the usual MergeBeforeUpdate.
	merge func(current, desired CT)
}

// combination is a resource with its children.
type combination[T client.Object, CT client.Object, CL client.ObjectList] struct {
	representation[T]
	child childRepresentation[CT, CL]
}

// The scenarios of the types above.
type (
	resourceScenarios interface {
		writesStatus(t *testing.T)
		hasFinalizer(t *testing.T)
	}
	combinationScenarios interface {
		hasChild(t *testing.T)
		hasChildren(t *testing.T)
		tracks(t *testing.T)
		isReconciledByAnOperator(t *testing.T)
	}
)

var (
	typedWidgets = representation[*resources.Widget]{
		empty: func() *resources.Widget { return &resources.Widget{} },
		of:    func(w *resources.Widget) *resources.Widget { return w },
		color: func(w *resources.Widget) string { return w.Spec.Fields["color"] },
		mark:  func(w *resources.Widget, value string) { w.Status.AddField("mark", value) },

		watched: &resources.Widget{},
	}
	unstructuredWidgets = representation[*unstructured.Unstructured]{
		empty: func() *unstructured.Unstructured { return ofKind("test.espalier.dev/v1", "Widget") },
		of: func(w *resources.Widget) *unstructured.Unstructured {
			return withoutType(w, resources.GroupVersion.WithKind("Widget"))
		},
		color: func(w *unstructured.Unstructured) string { return nestedString(w, "spec", "fields", "color") },
		mark:  func(w *unstructured.Unstructured, value string) { setNested(w, value, "status", "fields", "mark") },

		watched: ofKind("test.espalier.dev/v1", "Widget"),
	}
	duckWidgets = representation[*coloredDuck]{
		empty:   func() *coloredDuck { return &coloredDuck{TypeMeta: duckMeta("Widget")} },
		of:      newColoredDuck,
		color:   func(w *coloredDuck) string { return w.Spec.Fields["color"] },
		mark:    func(w *coloredDuck, value string) { w.Status.Fields = map[string]string{"mark": value} },
		watched: ofKind("test.espalier.dev/v1", "Widget"),
		patched: true,
	}

	typedConfigMaps = childRepresentation[*corev1.ConfigMap, *corev1.ConfigMapList]{
		empty: func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		list:  func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} },
		of:    func(child *corev1.ConfigMap) *corev1.ConfigMap { return child },
		color: func(child *corev1.ConfigMap) string { return child.Data["color"] },
		merge: mergeConfigMap,
	}
	unstructuredConfigMaps = childRepresentation[*unstructured.Unstructured, *unstructured.UnstructuredList]{
		empty: func() *unstructured.Unstructured { return ofKind("v1", "ConfigMap") },
		list:  func() *unstructured.UnstructuredList { return listOf("v1", "ConfigMap") },
		of: func(child *corev1.ConfigMap) *unstructured.Unstructured {
			return withoutType(child, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		},
		color: func(child *unstructured.Unstructured) string { return nestedString(child, "data", "color") },
		merge: func(current, desired *unstructured.Unstructured) {
			current.SetLabels(desired.GetLabels())
			setNested(current, nestedString(desired, "data", "color"), "data", "color")
		},
	}

	allResources = map[string]resourceScenarios{
		"typed": typedWidgets, "unstructured": unstructuredWidgets, "duck": duckWidgets,
	}
	allCombinations = map[string]combinationScenarios{
		"typed of typed":               combinationOf(typedWidgets, typedConfigMaps),
		"typed of unstructured":        combinationOf(typedWidgets, unstructuredConfigMaps),
		"unstructured of typed":        combinationOf(unstructuredWidgets, typedConfigMaps),
		"unstructured of unstructured": combinationOf(unstructuredWidgets, unstructuredConfigMaps),
		"duck of typed":                combinationOf(duckWidgets, typedConfigMaps),
		"duck of unstructured":         combinationOf(duckWidgets, unstructuredConfigMaps),
	}
)

func combinationOf[T client.Object, CT client.Object, CL client.ObjectList](
	resource representation[T], child childRepresentation[CT, CL],
) combinationScenarios {
	return combination[T, CT, CL]{resource, child}
}

func TestRepresentationsWriteStatus(t *testing.T) {
	forAll(t, allResources, resourceScenarios.writesStatus)
}

func TestRepresentationsHaveFinalizers(t *testing.T) {
	forAll(t, allResources, resourceScenarios.hasFinalizer)
}

func TestRepresentationsHaveAChild(t *testing.T) {
	forAll(t, allCombinations, combinationScenarios.hasChild)
}

func TestRepresentationsHaveChildren(t *testing.T) {
	forAll(t, allCombinations, combinationScenarios.hasChildren)
}

func TestRepresentationsTrack(t *testing.T) { forAll(t, allCombinations, combinationScenarios.tracks) }

func TestRepresentationsAreReconciledByAnOperator(t *testing.T) {
	forAll(t, allCombinations, combinationScenarios.isReconciledByAnOperator)
}

func forAll[S any](t *testing.T, of map[string]S, scenario func(S, *testing.T)) {
	for name, s := range of {
		t.Run(name, func(t *testing.T) { scenario(s, t) })
	}
}

// coloredDuck is a duck type for Widgets: it knows the fields of spec and status and nothing else.
type coloredDuck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   duckFields `json:"spec,omitempty"`
	Status duckFields `json:"status,omitempty"`
}

type duckFields struct {
	Fields map[string]string `json:"fields,omitempty"`
}

func duckMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: resources.GroupVersion.String(), Kind: kind}
}

func newColoredDuck(w *resources.Widget) *coloredDuck {
	return &coloredDuck{
		TypeMeta:   duckMeta("Widget"),
		ObjectMeta: w.ObjectMeta,
		Spec:       duckFields{w.Spec.Fields},
		Status:     duckFields{w.Status.Fields},
	}
}

func (d *coloredDuck) DeepCopyObject() runtime.Object {
	out := &coloredDuck{TypeMeta: d.TypeMeta, Spec: duckFields{maps.Clone(d.Spec.Fields)}, Status: duckFields{maps.Clone(d.Status.Fields)}}
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

func ofKind(apiVersion, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
}

func listOf(apiVersion, kind string) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": apiVersion, "kind": kind + "List"}}
}

// withoutType is a typed object as an API server sends it.
func withoutType(obj client.Object, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err) // the types are fixed when this is compiled
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	}
	for _, member := range []string{"spec", "status"} {
		if value, ok := content[member].(map[string]any); ok && len(value) == 0 {
			delete(content, member)
		}
	}
	return u
}

func nestedString(u *unstructured.Unstructured, path ...string) string {
	value, _, err := unstructured.NestedString(u.Object, path...)
	if err != nil {
		panic(err)
	}
	return value
}

func setNested(u *unstructured.Unstructured, value string, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// marks is a node that copies the color to the status.
func (r representation[T]) marks(calls *trace, result reconcilers.Result, err error) *reconcilers.SyncReconciler[T] {
	return &reconcilers.SyncReconciler[T]{
		SyncWithResult: func(_ context.Context, resource T) (reconcilers.Result, error) {
			calls.add("sync")
			r.mark(resource, r.color(resource))
			return result, err
		},
		Finalize: func(context.Context, T) error { calls.add("finalize"); return nil },
	}
}
