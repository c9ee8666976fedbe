package component_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// instancesOf returns the namespaces of the records of a kind.
func instancesOf(a *resources.Assembly, kind string) []string {
	namespaces := []string{}
	for _, record := range a.Status.Inventory {
		if record.Kind == kind {
			namespaces = append(namespaces, record.Namespace)
		}
	}
	return namespaces
}

// TestScopeOfATypeOfTheComponent: a release changes the scope of a type of the component, which the API server refuses.
// The release before and the deletion go on as if that had not been, and so they do with a record of the other scope.
func TestScopeOfATypeOfTheComponent(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	definition, instance := typeAndInstance(namespace, namespace+".scope.test", "Gear")
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", definition.DeepCopy(), instance, part)
	create(t, c, assembly)
	isReady(t, c, assembly)

	other, without := definition.DeepCopy(), instance.DeepCopy()
	other.Spec.Scope = apiextensionsv1.ClusterScoped
	without.SetNamespace("")
	desire(t, c, assembly, other, without, part)
	says(t, c, assembly, component.ReasonError, "spec.scope")
	if got := instancesOf(assembly, "Gear"); len(got) != 1 || got[0] != namespace {
		t.Errorf("after a change of the scope was refused, the records of instances are in %q, want one in %s", got, namespace)
	}
	desire(t, c, assembly, definition.DeepCopy(), instance, part)
	isReady(t, c, assembly)

	poison := func() {
		t.Helper()
		controlplanetest.Eventually(t, "the status is not changed", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
				return err
			}
			assembly.Status.Inventory = append(assembly.Status.Inventory, apis.InventoryRecord{
				Group: definition.Spec.Group, Version: "v1", Kind: "Gear", Name: instance.GetName(),
			})
			return c.Status().Update(ctx, assembly)
		})
	}
	poison()
	controlplanetest.Eventually(t, "the record stays", func(ctx context.Context) error {
		err := hasState(ctx, c, assembly, apis.ComponentReady)
		if got := instancesOf(assembly, "Gear"); err == nil && len(got) != 1 {
			err = fmt.Errorf("the records of instances are in %q", got)
		}
		return err
	})
	poison()
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	metadata := &metav1.PartialObjectMetadata{TypeMeta: definition.TypeMeta, ObjectMeta: definition.ObjectMeta}
	controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly, part, metadata))
}
