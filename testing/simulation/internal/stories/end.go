package stories

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// End is what a cluster is like at a point of a story. It has to be the same each time the story is told.
type End struct {
	// Kinds are those of the objects that are compared.
	Kinds []schema.GroupVersionKind

	mu    sync.Mutex
	first map[string]any
}

// Compare fails the story if the cluster differs from what it was like when Compare was called first.
func (e *End) Compare(w *simulation.World) {
	w.Helper()
	now := e.read(w)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == nil {
		e.first = now
	}
	if diff := cmp.Diff(e.first, now); diff != "" {
		w.Errorf("the cluster is not as it is without faults (-without +now):\n%s", diff)
	}
}

func (e *End) read(w *simulation.World) map[string]any {
	w.Helper()
	seen := map[string]any{}
	for _, kind := range e.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.Client.List(w.Context(), list); err != nil {
			w.Fatalf("list %s: %v", kind.Kind, err)
		}
		for _, obj := range list.Items {
			seen[fmt.Sprintf("%s %s/%s", kind.Kind, obj.GetNamespace(), obj.GetName())] = masked(obj.Object)
		}
	}
	return seen
}

// moment is a time in an object, and identity a UID.
var (
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	identity = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// differs are the keys of what depends on how often an object was written. An inventory names the fields that a
// component owns: an object that was applied has not those that the API server fills in at a creation.
var differs = []string{
	"resourceVersion", "generation", "observedGeneration", "appliedGeneration", "managedFields", "fields", "uid",
	"deployment.kubernetes.io/revision",
}

// masked returns a value without what differs from run to run: versions, UIDs and times.
func masked(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for key, item := range value {
			if !slices.Contains(differs, key) {
				copied[key] = masked(item)
			}
		}
		return copied
	case []any:
		var copied []any
		for _, item := range value {
			copied = append(copied, masked(item))
		}
		return copied
	case string:
		return identity.ReplaceAllString(moment.ReplaceAllString(value, "TIME"), "UID")
	}
	return value
}

// Foreign are objects that the operator must not touch.
type Foreign []client.Object

// Create creates the objects.
func (f Foreign) Create(w *simulation.World) {
	w.Helper()
	w.Create(f...)
}

// AreUntouched fails the story if an object is not as it was created.
func (f Foreign) AreUntouched(w *simulation.World) {
	w.Helper()
	for _, obj := range f {
		now := obj.DeepCopyObject().(client.Object)
		w.Get(now)
		if now.GetUID() != obj.GetUID() || now.GetResourceVersion() != obj.GetResourceVersion() {
			w.Errorf("%T %s was touched:\n%s", obj, client.ObjectKeyFromObject(obj), cmp.Diff(obj, now))
		}
	}
}

// Named returns the metadata of an object.
func Named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
