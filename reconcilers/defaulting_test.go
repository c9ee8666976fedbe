package reconcilers_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ways in which a resource may fill in its own defaults. Each says so in its spec.
type (
	defaultedByItself struct{ defaulted }
	defaultedByType   struct{ defaulted }
	defaultedByObject struct{ defaulted }
	defaultedBefore   struct{ defaulted }
	notDefaulted      struct{ defaulted }
	failsToDefault    struct{ defaulted }
)

type defaulted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		By string `json:"by,omitempty"`
	} `json:"spec"`
	Status plainStatus `json:"status"`
}

func (d *defaulted) by() string { return d.Spec.By }

func (d *defaultedByItself) DeepCopyObject() runtime.Object {
	return copyByJSON(d, &defaultedByItself{})
}
func (d *defaultedByType) DeepCopyObject() runtime.Object { return copyByJSON(d, &defaultedByType{}) }
func (d *defaultedByObject) DeepCopyObject() runtime.Object {
	return copyByJSON(d, &defaultedByObject{})
}
func (d *defaultedBefore) DeepCopyObject() runtime.Object { return copyByJSON(d, &defaultedBefore{}) }
func (d *notDefaulted) DeepCopyObject() runtime.Object    { return copyByJSON(d, &notDefaulted{}) }
func (d *failsToDefault) DeepCopyObject() runtime.Object  { return copyByJSON(d, &failsToDefault{}) }

func (d *defaultedByItself) Default(context.Context) error { d.Spec.By = "itself"; return nil }

func (d *defaultedByType) Default(_ context.Context, o *defaultedByType) error {
	o.Spec.By = "type"
	return nil
}

func (d *defaultedByObject) Default(_ context.Context, o runtime.Object) error {
	o.(*defaultedByObject).Spec.By = "object"
	return nil
}

func (d *defaultedBefore) Default() { d.Spec.By = "before" }

func (d *notDefaulted) Default(string) {}

func (d *failsToDefault) Default(context.Context) error { return errBoom }

func TestDefaulting(t *testing.T) {
	testDefaulting(t, &defaultedByItself{}, "itself", nil)
	testDefaulting(t, &defaultedByType{}, "type", nil)
	testDefaulting(t, &defaultedByObject{}, "object", nil)
	testDefaulting(t, &defaultedBefore{}, "before", nil)
	testDefaulting(t, &notDefaulted{}, "", nil)
	testDefaulting(t, &failsToDefault{}, "not called", errBoom)
}

// testDefaulting checks what the tree gets to see. Defaults are not written.
func testDefaulting[T interface {
	client.Object
	by() string
}](t *testing.T, given T, by string, fails error) {
	t.Helper()
	t.Run(reflect.TypeOf(given).Elem().Name(), func(t *testing.T) {
		t.Helper()
		scheme := resources.NewScheme()
		scheme.AddKnownTypeWithName(resources.GroupVersion.WithKind("Thing"), given)
		given.SetNamespace(widgetKey.Namespace)
		given.SetName(widgetKey.Name)
		expect := &rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{given}}
		seen := "not called"
		root := &reconcilers.ResourceReconciler[T]{
			SkipResource: func(_ context.Context, resource T) bool {
				if resource.by() != by {
					t.Errorf("SkipResource sees %q, expected %q", resource.by(), by)
				}
				return false
			},
			Reconciler: &reconcilers.SyncReconciler[T]{Sync: func(_ context.Context, resource T) error {
				seen = resource.by()
				return nil
			}},
			Config: expect.Config(),
		}
		if _, err := root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, fails) {
			t.Errorf("returned %v, expected %v", err, fails)
		}
		if seen != by {
			t.Errorf("the tree sees %q, expected %q", seen, by)
		}
		expect.AssertExpectations(t)
	})
}
