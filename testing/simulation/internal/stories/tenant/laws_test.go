package tenant_test

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// laws hold at each write of the operator.
func laws() []simulation.Invariant {
	isTenant := func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Tenant" }
	return []simulation.Invariant{
		{Name: "L3: a finalizer is on before the directory lists the tenant", Check: isGuarded},
		simulation.NothingForeign(isTenant), // L4
	}
}

// isGuarded checks that a tenant that is Registered has the finalizer.
func isGuarded(write simulation.Write, _ simulation.State) error {
	var tenant v1alpha1.Tenant
	if !write.After(&tenant) || tenant.DeletionTimestamp != nil {
		return nil
	}
	registered := tenant.Status.GetCondition(v1alpha1.Registered)
	if registered == nil || registered.Status != "True" {
		return nil
	}
	if !slices.Contains(tenant.Finalizers, v1alpha1.GroupVersion.Group+"/directory") {
		return errors.New("the tenant is Registered without the finalizer")
	}
	return nil
}
