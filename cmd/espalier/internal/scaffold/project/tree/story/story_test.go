// Package story_test runs the operator in a simulated cluster, in virtual time: once as it should be, and then with a
// fault at each of its requests.
package story_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	//scaffold:if objects
	appsv1 "k8s.io/api/apps/v1"
	//scaffold:end
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestMain bounds the time that faults take. Those that find most are tried first. For all of them, run
// "go test ./story -simulation.budget=10m".
func TestMain(m *testing.M) {
	if err := flag.Set("simulation.budget", "10s"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newResource() *v9alpha9.Placeholder {
	return &v9alpha9.Placeholder{
		//scaffold:if namespaced
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample"},
		Spec:       v9alpha9.PlaceholderSpec{Image: "nginx:stable", Replicas: 2},
		//scaffold:end
		//scaffold:if cluster
		//+ObjectMeta: metav1.ObjectMeta{Name: "sample"},
		//+Spec:       v9alpha9.PlaceholderSpec{Image: "nginx:stable", Namespace: "default", Replicas: 2},
		//scaffold:end
	}
}

func TestLife(t *testing.T) {
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	options := simulation.Options{
		Scheme:      scheme,
		Definitions: simulation.ReadDefinitions(t, "../config/crd"),
		// A request that the role does not allow fails.
		Rules: simulation.ReadRules(t, "../config/rbac/role.yaml"),
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			return controller.SetUp(ctx, mgr, espalier.NewConfig(mgr))
		},
	}
	simulation.RunFaults(t, options, life)
}

// life is the story of a resource.
func life(w *simulation.World) {
	resource := newResource()
	w.Create(resource)
	w.Rest()
	isReady(w, resource)

	//scaffold:if objects
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample"}}
	w.As("somebody else").Delete(deployment)
	w.Rest()
	isReady(w, resource)

	//scaffold:end
	w.Update(resource, func() { resource.Spec.Replicas = 3 })
	w.Rest()
	isReady(w, resource)
	//scaffold:if objects
	w.Get(deployment)
	if n := *deployment.Spec.Replicas; n != 3 {
		w.Errorf("the Deployment has %d replicas, want 3", n)
	}
	//scaffold:end
	w.Idle(time.Hour)

	w.Delete(resource)
	w.Rest()
	//scaffold:if objects
	if w.Exists(deployment) {
		w.Errorf("the Deployment outlives the resource")
	}
	//scaffold:end
	if w.Exists(resource) {
		w.Errorf("the resource is still there")
	}
}

// isReady fails the story unless the condition Ready is True, for the present spec.
func isReady(w *simulation.World, resource *v9alpha9.Placeholder) {
	w.Helper()
	w.Get(resource)
	ready := resource.Status.GetCondition("Ready")
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != resource.Generation {
		w.Errorf("it is not ready: %+v", resource.Status.Conditions)
	}
}
