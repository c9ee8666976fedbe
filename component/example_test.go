package component_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A component is what its generator makes. Its objects are recorded by the first request, and created by the next, wave by wave.
func ExampleComponentReconciler() {
	part := func(namespace, name, order string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{"espalier.dev/apply-order": order},
		}}
	}
	node := &component.ComponentReconciler[*resources.Assembly]{
		Prefix: "assembly.example.com",
		Generator: generator.GeneratorFunc(func(_ context.Context, namespace, name string, _ generator.Unstructurable) ([]client.Object, error) {
			return []client.Object{part(namespace, name+"-roof", "1"), part(namespace, name+"-walls", "0")}, nil
		}),
	}
	house := resources.NewAssembly("default", "house")
	house.UID, house.ResourceVersion = "u", "999"
	ctx, config := exampleCluster(house)
	for range 3 {
		plan, err := node.Plan(ctx, house)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, operation := range plan.Operations {
			fmt.Println("to do:", operation.Action, operation.Object)
		}
		if _, err := node.Reconcile(ctx, house); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s, with %d records\n", house.Status.State, len(house.Status.Inventory))
	}

	var list corev1.ConfigMapList
	if err := config.List(ctx, &list, client.InNamespace("default")); err != nil {
		fmt.Println(err)
	}
	for _, object := range list.Items {
		fmt.Println("there is", object.Name)
	}
	// Output:
	// to do: create ConfigMap default/house-walls
	// Pending, with 2 records
	// to do: create ConfigMap default/house-walls
	// Ready, with 2 records
	// Ready, with 2 records
	// there is house-roof
	// there is house-walls
}
