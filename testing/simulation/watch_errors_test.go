package simulation

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// numbered is a Volume whose class is a number in Go, and a text in the schema.
type numbered struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Class int `json:"class"`
	} `json:"spec"`
}

func (n *numbered) DeepCopyObject() runtime.Object {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type numberedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []numbered `json:"items"`
}

func (n *numberedList) DeepCopyObject() runtime.Object {
	c := *n
	c.Items = append([]numbered(nil), n.Items...)
	return &c
}

// Point 15: an operator that lists again and again is said to do so because of an object that its type cannot decode.
func TestExplorationsSayWhyAWatchFails(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Volume"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, &numbered{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind("VolumeList"), &numberedList{})
	metav1.AddToGroupVersion(scheme, kind.GroupVersion())
	x, err := newExplorer(Options{
		Scheme: scheme, Definitions: ReadDefinitions(t, "testdata/volumes.yaml"),
		Operator: func(_ context.Context, mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&numbered{}).Complete(reconcile.Func(
				func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
		},
	}, Exploration{Resource: &numbered{}})
	if err != nil {
		t.Fatal(err)
	}
	_, o := x.play(t, Plan{}, func(w *World) {
		volume := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"class": "fast"}}}
		volume.SetGroupVersionKind(kind)
		volume.SetNamespace("default")
		volume.SetName("data")
		w.Create(volume)
	})
	for _, want := range []string{"in which nothing happened", "json: cannot unmarshal string into Go struct field"} {
		if !strings.Contains(o.said, want) {
			t.Errorf("the failure lacks %q:\n%s", want, o.said)
		}
	}
}
