package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kept is a finalizer that nobody takes off.
const kept = "other.test/finalizer"

// offer is how the condition of the house ends when its deletion offers to give up what is left.
func offer(left string) string {
	return "; the annotation " + componentPrefix + "/" + generator.AnnotationAbandon + ": house-uid gives up " + left
}

// says makes a request and reports how it comes out: the message of the condition, or "gone".
func (o *operated) says(t *testing.T, after time.Duration) string {
	t.Helper()
	// An error is in the condition.
	_, _ = o.reconcile(t, after)
	house := &resources.Assembly{}
	err := o.client.Get(t.Context(), o.key, house)
	if apierrs.IsNotFound(err) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	return house.Status.Conditions[0].Message
}

func (o *operated) remove(t *testing.T) {
	t.Helper()
	if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
		t.Fatal(err)
	}
}

func (o *operated) abandon(t *testing.T) {
	t.Helper()
	house := o.house(t)
	o.change(t, house, func() {
		metav1.SetMetaDataAnnotation(&house.ObjectMeta, componentPrefix+"/"+generator.AnnotationAbandon, string(house.UID))
	})
}

// TestDeletionThatStallsIsGivenUp: ten minutes after the last write, a deletion in the cluster of the operator offers to
// give up what is left, whatever it waits for.
func TestDeletionThatStallsIsGivenUp(t *testing.T) {
	house, walls, roof := newHouse()
	house.Finalizers = []string{componentFinalizer}
	walls.Finalizers, roof.Finalizers = []string{kept}, []string{kept}
	walls.Annotations[generator.SharedPrefix+"/"+generator.AnnotationDeleteOrder] = "1"
	house.SetObjects(walls, roof)
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	o.remove(t)
	for range 4 {
		if got := o.says(t, 3*time.Minute-time.Second); !strings.HasPrefix(got, "2 objects left") || strings.Contains(got, "gives up") {
			t.Errorf("before ten minutes are over, the condition is %q, want it to say only that 2 objects are left", got)
		}
	}
	// The next object is deleted, so the time begins again.
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: roof.Name}}
	o.change(t, live, func() { live.Finalizers = nil })
	for range 3 {
		if got := o.says(t, 4*time.Minute); !strings.HasPrefix(got, "1 object left") || strings.Contains(got, "gives up") {
			t.Errorf("before ten minutes are over, the condition is %q, want it to say only that 1 object is left", got)
		}
	}
	result, err := o.reconcile(t, 0)
	if after := result.RequeueAfter; err != nil || after > 2*time.Minute+6*time.Second {
		t.Errorf("the request after 8 minutes ends with %v and %v, want another one in 2 minutes", after, err)
	}
	want := offer("1 object (ConfigMap default/walls)")
	if got := o.says(t, 2*time.Minute); !strings.HasSuffix(got, want) {
		t.Errorf("after ten minutes, the condition is %q, want it to end with %q", got, want)
	}
	o.abandon(t)
	if got, want := o.says(t, time.Second), "Gave up 1 object (ConfigMap default/walls) in this cluster: "; !strings.HasPrefix(got, want) {
		t.Errorf("the condition is %q, want it to begin with %q", got, want)
	}
	if got := o.says(t, time.Second); got != "gone" {
		t.Errorf("the condition is %q, want the resource gone", got)
	}
	o.get(t, walls.Name, &corev1.ConfigMap{})
}

// TestDeletionThatFailsIsGivenUp: so does one that ends with an error, also before it looks at the objects.
func TestDeletionThatFailsIsGivenUp(t *testing.T) {
	for name, fail := range map[string]func(*component.ComponentReconciler[*resources.Assembly]){
		"hook": func(node *component.ComponentReconciler[*resources.Assembly]) {
			node.Hooks.PostRead = []generator.Hook[*resources.Assembly]{
				func(context.Context, client.Client, *resources.Assembly) error { return errors.New("it never works") },
			}
		},
		"configuration": func(node *component.ComponentReconciler[*resources.Assembly]) {
			node.Configure = func(context.Context, *resources.Assembly, *generator.Configuration) error {
				return errors.New("it never works")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			house, _, _ := newHouse()
			house.Finalizers = []string{componentFinalizer}
			o := newOperated(t, assembling(), house, nil)
			o.untilIdle(t)
			node := assembling()
			fail(node)
			o.root.Reconciler = node
			o.remove(t)
			want := offer("2 objects (ConfigMap default/walls, ConfigMap default/roof)")
			for _, after := range []time.Duration{0, 9 * time.Minute, time.Minute} {
				got := o.says(t, after)
				if !strings.Contains(got, "t never works") || strings.HasSuffix(got, want) != (after == time.Minute) {
					t.Errorf("%s later, the condition is %q, want it to end with %q after ten minutes alone", after, got, want)
				}
			}
			o.abandon(t)
			o.says(t, time.Second)
			if got := o.says(t, time.Second); got != "gone" {
				t.Errorf("the condition is %q, want the resource gone", got)
			}
		})
	}
}

// TestTypesThatAreGivenUpHaveNoFence: instances of a type that is given up can be created again.
func TestTypesThatAreGivenUpHaveNoFence(t *testing.T) {
	house, _, _ := newHouse()
	house.Finalizers = []string{componentFinalizer}
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	gadget := &resources.Widget{
		TypeMeta:   metav1.TypeMeta{APIVersion: resources.GroupVersion.String(), Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", Finalizers: []string{kept}},
	}
	house.SetObjects(definition, gadget)
	o := newOperated(t, assembling(), house, nil)
	o.untilIdle(t)
	fences := func() int {
		object, live := &unstructured.Unstructured{}, &apiextensionsv1.CustomResourceDefinition{}
		object.SetGroupVersionKind(definition.GroupVersionKind())
		if err := o.client.Get(t.Context(), client.ObjectKey{Name: definition.Name}, object); err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, live); err != nil {
			t.Fatal(err)
		}
		return len(live.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations)
	}
	o.remove(t)
	o.says(t, time.Second)
	if got := fences(); got != 1 {
		t.Fatalf("the type has %d fences, want 1, or the test shows nothing", got)
	}
	o.abandon(t)
	o.says(t, time.Second)
	if got := o.says(t, time.Second); strings.Contains(got, "Gave up") {
		t.Errorf("the condition is %q before ten minutes are over, want nothing given up", got)
	}
	o.says(t, 10*time.Minute)
	if got := o.says(t, time.Second); got != "gone" || fences() != 0 {
		t.Errorf("the condition is %q and the type has %d fences, want the resource gone and none", got, fences())
	}
}
