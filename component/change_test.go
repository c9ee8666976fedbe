package component_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOneObjectChanged: a change of one object costs its write and that of the inventory, however many objects there
// are.
func TestOneObjectChanged(t *testing.T) {
	t.Parallel()
	const limit = 3
	for _, inventory := range []string{"", "Secret"} {
		t.Run("inventory="+or(inventory, "status"), func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			options := assemblyOptions{Inventory: component.Inventory{Kind: inventory}}
			operator := startComponents(t, plane.Config(t), namespace, options)
			requests := operator.requests
			var objects []client.Object
			for i := range 20 {
				objects = append(objects, partOf(namespace, "part-"+strconv.Itoa(i), strconv.Itoa(i%2)))
			}
			assembly := resources.NewAssembly(namespace, "all", objects...)
			if err := c.Create(t.Context(), assembly); err != nil {
				t.Fatal(err)
			}
			isReady := func(ctx context.Context) error { return hasState(ctx, c, assembly, apis.ComponentReady) }
			controlplanetest.Eventually(t, "it is not deployed", isReady)
			controlplanetest.Quiet(t, requests)

			changed := partOf(namespace, "part-3", "1")
			changed.Data["name"] = "changed"
			objects[3] = changed
			controlplanetest.Eventually(t, "it cannot be changed", func(ctx context.Context) error {
				if err := isReady(ctx); err != nil {
					return err
				}
				assembly.SetObjects(objects...)
				requests.Reset()
				return c.Update(ctx, assembly)
			})
			controlplanetest.Eventually(t, "the change is not deployed", isReady)
			controlplanetest.Rest(t, requests)
			if n := requests.Total(); n > limit {
				t.Errorf("there are %d requests for the change, want at most %d:\n%s", n, limit, requests)
			}

			// What the object itself shows need not be in the inventory, and is not added after a restart.
			operator.stop()
			requests = startComponents(t, plane.Config(t), namespace, options).requests
			controlplanetest.Eventually(t, "it does not start", func(context.Context) error {
				if requests.Total() == 0 {
					return errors.New("no requests")
				}
				return nil
			})
			controlplanetest.Rest(t, requests)
			if n := requests.Writes(); n > 0 {
				t.Errorf("there are %d writes after a restart, want none:\n%s", n, requests)
			}
		})
	}
}
