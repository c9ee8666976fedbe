package component_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPurgedOnceStatusIsLost: an object that is purged is not created again where the write of the status that would have said so is lost, such
// as to a conflict. A Job would run a second time.
func TestPurgedOnceStatusIsLost(t *testing.T) {
	node := &component.ComponentReconciler[*resources.Assembly]{
		Prefix: "assembly.example.com",
		Generator: generator.GeneratorFunc(func(_ context.Context, namespace, _ string, _ generator.Unstructurable) ([]client.Object, error) {
			return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "scaffold", Annotations: map[string]string{"espalier.dev/purge-order": "0"},
			}}}, nil
		}),
	}
	house := resources.NewAssembly("default", "house")
	house.UID, house.ResourceVersion = "u", "999"
	created := 0
	count := func(action rtesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "create" && action.GetResource().Resource == "ConfigMap" {
			created++
		}
		return false, nil, nil
	}
	c := rtesting.ExpectConfig{
		Scheme:       resources.NewScheme(),
		GivenObjects: []client.Object{house},
		WithReactors: []rtesting.ReactionFunc{born, count},
	}
	config := c.Config()
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), config), config)
	isThere := func() bool {
		err := config.Get(ctx, client.ObjectKey{Namespace: "default", Name: "scaffold"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}

	lost := false
	for range 10 {
		before := house.DeepCopy()
		if _, err := node.Reconcile(ctx, house); err != nil {
			t.Fatal(err)
		}
		if created > 0 && !lost && !isThere() {
			house, lost = before, true
		}
	}
	if !lost || isThere() {
		t.Fatalf("the inventory is %+v, want the object purged", house.Status.Inventory)
	}
	if created != 1 {
		t.Errorf("the object was created %d times, want once", created)
	}
}
