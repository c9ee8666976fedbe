package dependents_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/test/dependents"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func operator(ctx context.Context, mgr ctrl.Manager) error {
	return dependents.New(espalier.NewConfig(mgr)).SetupWithManager(ctx, mgr)
}

func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := dependents.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	isService := func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "Service" && obj.GetAPIVersion() == "services.example.com/v1"
	}
	return simulation.Options{
		Operator: operator, Scheme: scheme,
		Definitions: simulation.ReadDefinitions(t, "../../../../../test/dependents/crd"),
		Always:      []simulation.Invariant{simulation.NothingForeign(isService)},
	}
}

// TestServices tells drawn stories of services.
func TestServices(t *testing.T) {
	options := cluster(t)
	options.Objects = []client.Object{
		&dependents.Capability{ObjectMeta: stories.Named("default", "db"), Address: "db:5432"},
	}
	simulation.Explore(t, options, simulation.Exploration{
		Resource: &dependents.Service{}, Resources: 2, Steps: 6, Disturb: true,
		// What a service that was valid has stays when it is not valid any more, see life.
		Hints: simulation.Hints{".spec.capability": {"db"}, ".spec.port": {int64(8080), int64(9090)}},
	})
}

// TestLife tells the life of one service, whose capability a user makes, and takes away.
func TestLife(t *testing.T) { simulation.RunSeeds(t, cluster(t), life) }

func life(w *simulation.World) {
	service := &dependents.Service{ObjectMeta: stories.Named("default", "shop"), Spec: dependents.ServiceSpec{
		Port: 80, Capability: "db",
	}}
	w.Create(service)
	w.Rest()
	says(w, service, map[string]string{"Valid": "Invalid", "AccountReady": "Waiting", "DeploymentReady": "Waiting", "Ready": "Invalid"})

	w.Update(service, func() { service.Spec.Port = 0 })
	w.Rest()
	says(w, service, map[string]string{
		"Valid": "Succeeded", "AccountReady": "Ready", "BindingReady": "Ready", "CapabilityReady": "NotFound",
		"DeploymentReady": "Waiting",
	})
	capability := &dependents.Capability{ObjectMeta: stories.Named("default", "db")}
	w.Create(capability)
	w.Rest()
	says(w, service, map[string]string{"CapabilityReady": "NoAddress", "DeploymentReady": "Waiting"})
	w.Update(capability, func() { capability.Address = "db:5432" })
	w.Rest()
	says(w, service, map[string]string{"CapabilityReady": "Ready", "DeploymentReady": "Ready", "Ready": "Ready"})
	w.Idle(time.Hour)
	deployment := &appsv1.Deployment{ObjectMeta: stories.Named("default", "shop")}
	w.Get(deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if service.Status.Available != 1 || container.Image != "runtime:java" || container.Env[0].Value != "db:5432" {
		w.Errorf("%d pods are available, of %+v", service.Status.Available, container)
	}

	w.As("someone").Delete(&rbacv1.Role{ObjectMeta: stories.Named("default", "shop")})
	w.Update(capability, func() { capability.Address = "other:5432" })
	w.Update(service, func() { service.Spec.Runtime = "node" })
	w.Rest()
	says(w, service, map[string]string{"RoleReady": "Ready", "Ready": "Ready"})
	w.Get(deployment)
	if env := deployment.Spec.Template.Spec.Containers[0].Env; env[0].Value != "other:5432" {
		w.Errorf("the environment is %v, though the capability has another address", env)
	}
	w.Delete(capability)
	w.Rest()
	says(w, service, map[string]string{"CapabilityReady": "NotFound", "DeploymentReady": "Waiting"})
	if !w.Exists(deployment) {
		w.Error("the Deployment is gone with the capability")
	}
	w.Delete(service)
	w.Rest()
	w.Idle(time.Hour)
	if w.Exists(service) || w.Exists(deployment) {
		w.Error("the service and its Deployment are still there")
	}
}

// says fails the story unless the conditions have these reasons.
func says(w *simulation.World, service *dependents.Service, reasons map[string]string) {
	w.Helper()
	w.Get(service)
	for name, want := range reasons {
		if got := meta.FindStatusCondition(service.Status.Conditions, name); got == nil || got.Reason != want {
			w.Errorf("the condition %s is %+v, want it %s", name, got, want)
		}
	}
}
