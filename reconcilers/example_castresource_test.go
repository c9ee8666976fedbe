package reconcilers_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labelled is a duck type: every object with labels is one.
type Labelled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (l *Labelled) DeepCopyObject() runtime.Object {
	return &Labelled{TypeMeta: l.TypeMeta, ObjectMeta: *l.ObjectMeta.DeepCopy()}
}

// A node that is written for everything with labels serves Widgets too, and its finalizer is on the Widget.
func ExampleCastResource() {
	labelling := &reconcilers.WithFinalizer[*Labelled]{
		Finalizer: "example.com/labels",
		Reconciler: &reconcilers.SyncReconciler[*Labelled]{
			Sync: func(_ context.Context, l *Labelled) error {
				fmt.Println("label", l.Kind, l.Name)
				l.Labels = map[string]string{"tier": "gold"}
				return nil
			},
		},
	}
	node := &reconcilers.CastResource[*resources.Widget, *Labelled]{Reconciler: labelling}

	gadget := &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"image": "example.com/app:1"}},
	}
	ctx, config := exampleCluster(gadget)
	_ = config.Get(ctx, widgetKey, gadget)
	_, err := node.Reconcile(ctx, gadget)
	fmt.Println(gadget.Labels, gadget.Finalizers, gadget.Spec.Fields, err)
	// Output:
	// label Widget gadget
	// map[tier:gold] [example.com/labels] map[image:example.com/app:1] <nil>
}
