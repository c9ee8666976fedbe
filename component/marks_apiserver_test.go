package component_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOwnerLabelThatOthersChange: the owner annotation says that the object is still ours. The label is put right, and
// the object is deleted with the component.
func TestOwnerLabelThatOthersChange(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	part := partOf(namespace, "part", "0")
	assembly := resources.NewAssembly(namespace, "all", part)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	ready := func(ctx context.Context) error { return hasState(ctx, c, assembly, apis.ComponentReady) }
	controlplanetest.Eventually(t, "it is not deployed", ready)
	const label = componentPrefix + "/owner-id"
	get := func(ctx context.Context) *corev1.ConfigMap {
		o := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(part), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	ours := get(t.Context()).Labels[label]
	relabel := func() {
		o := get(t.Context())
		o.Labels[label] = "theirs"
		if err := c.Update(t.Context(), o, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	relabel()
	controlplanetest.Eventually(t, "the label is not put right", func(ctx context.Context) error {
		if label := get(ctx).Labels[label]; label != ours {
			return fmt.Errorf("it is %q", label)
		}
		return ready(ctx)
	})

	op.stop()
	relabel()
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	controlplanetest.Eventually(t, "the resource does not go", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly)
		if apierrs.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	if err := isLeaving(t.Context(), c, part); err != nil {
		t.Errorf("after the deletion: %v, want the object deleted with the component", err)
	}
}
