package shop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// registries has the registry of hosts of each world.
var registries simulation.External[registry.Memory]

// called is a registry whose calls have faults, as requests have.
type called struct{ *registry.Memory }

func (c called) Register(ctx context.Context, owner, host string) error {
	return rtesting.Call(ctx, "register "+owner, func() error { return c.Memory.Register(ctx, owner, host) })
}

func (c called) Unregister(ctx context.Context, owner string) error {
	return rtesting.Call(ctx, "unregister "+owner, func() error { return c.Memory.Unregister(ctx, owner) })
}

// operator sets up the operator as its main function does.
func operator(ctx context.Context, mgr ctrl.Manager) error {
	return controller.New(espalier.NewConfig(mgr), called{registries.In(ctx)}, time.Minute).SetupWithManager(ctx, mgr)
}

// cluster returns options with the operator and what it needs in the cluster.
func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	crd, err := config.CRD()
	if err != nil {
		t.Fatal(err)
	}
	isShop := func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Shop" }
	return simulation.Options{
		Operator:    operator,
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{crd},
		Always: []simulation.Invariant{
			{Name: "L3: a finalizer is on before the registry has the host", Check: isGuarded},
			simulation.NothingForeign(isShop), // L4
		},
	}
}

// isGuarded checks that a shop that is Registered has the finalizer.
func isGuarded(write simulation.Write, _ simulation.State) error {
	var shop v1.Shop
	if !write.After(&shop) || shop.DeletionTimestamp != nil {
		return nil
	}
	registered := shop.Status.GetCondition(v1.Registered)
	if registered == nil || registered.Status != "True" {
		return nil
	}
	if !slices.Contains(shop.Finalizers, "shop.example.com/registration") {
		return errors.New("the shop is Registered without the finalizer")
	}
	return nil
}
