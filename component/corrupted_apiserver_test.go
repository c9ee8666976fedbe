package component_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// TestStatusThatOthersEmpty: objects that only their marks show are deleted with the component.
func TestStatusThatOthersEmpty(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
	op.stop()
	assembly.Status = resources.Assembly{}.Status
	if err := c.Status().Update(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	controlplanetest.Eventually(t, "the resource does not go", isGone(c, assembly))
	if err := isLeaving(t.Context(), c, part); err != nil {
		t.Errorf("after the deletion: %v, want the object deleted with the component", err)
	}
}
