package testing_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A row starts with a component that is rolled out, and with what somebody has done to it since.
func ExampleRollout() {
	walls, roof := part("walls"), part("roof")
	walls.Data = map[string]string{"color": "white"}
	house := rtesting.Rollout[*resources.Assembly]{
		Scheme:     widgets,
		Resource:   houseOf(walls, roof),
		Reconciler: houseNode(),
	}.Run(nil) // In a test this is the test's t.
	fmt.Println(house.Object().Status.State, house.Find(walls).GetName())

	damaged := house.After(nil, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, part("walls"), client.RawPatch(types.MergePatchType, []byte(`{"data": {"color": "red"}}`)))
	})
	// A row has damaged.Object() as its Resource, damaged.Objects() as its GivenObjects, and these expectations:
	heal, remove := house.ApplyRef(walls), house.DeleteRef(roof)
	fmt.Println("applied:", heal.Name, "or deleted:", remove.Name,
		"with its UID:", *remove.Preconditions.UID == house.Find(roof).GetUID())

	c := rtesting.ExpectConfig{Scheme: widgets, GivenObjects: append(damaged.Objects(), damaged)}
	plan, err := houseNode().Plan(reconcilers.StashConfig(context.Background(), c.Config()), damaged.Object())
	fmt.Print(plan)
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Ready walls
	// applied: walls or deleted: roof with its UID: true
	// wave 1 of 1
	//   apply ConfigMap default/walls: it was changed in the cluster
}
