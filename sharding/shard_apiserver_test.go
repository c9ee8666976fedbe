package sharding_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isBy returns an error unless a process made the ConfigMap of a Widget as it is now.
func isBy(ctx context.Context, c client.Client, w *resources.Widget, process, image string) error {
	child := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), child); err != nil {
		return err
	}
	if child.Data["by"] != process || child.Data["image"] != image {
		return fmt.Errorf("the ConfigMap has %v, want it made by %s for the image %q",
			child.Data, process, image)
	}
	return nil
}

// A resource without the label of a shard is nobody's. The shard that has it gives it back when the ring asks, and the
// one that gets it goes on with the child that is there, although its cache does not show it.
func TestAResourceIsItsShardsUntilItIsGivenBack(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	start(t, namespace, "first", made("first"))
	start(t, namespace, "second", made("second"))
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w"}}
	other := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "other", Labels: map[string]string{shardLabel: "first"},
	}}
	for _, obj := range []client.Object{w, other} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	controlplanetest.Eventually(t, "the assigned Widget has no child", func(ctx context.Context) error {
		return isBy(ctx, c, other, "first", "")
	})
	if err := isBy(t.Context(), c, w, "first", ""); err == nil {
		t.Error("a Widget without the label of a shard has a child, want none")
	}

	label(t, c, w, assigned("first"))
	controlplanetest.Eventually(t, "the Widget has no child", func(ctx context.Context) error {
		return isBy(ctx, c, w, "first", "")
	})
	child := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), child); err != nil {
		t.Fatal(err)
	}
	if len(child.Labels) > 0 {
		t.Errorf("the child has the labels %v, want none: they are the ring's to set", child.Labels)
	}

	label(t, c, w, fmt.Sprintf(`{%q:"true"}`, drainLabel))
	controlplanetest.Eventually(t, "the Widget is not given back", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if len(w.Labels) > 0 {
			return fmt.Errorf("it has the labels %v", w.Labels)
		}
		return nil
	})
	label(t, c, w, assigned("second"))
	controlplanetest.Eventually(t, "the second process does not go on", func(ctx context.Context) error {
		return isBy(ctx, c, w, "second", "")
	})
	again := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), again); err != nil {
		t.Fatal(err)
	}
	if again.UID != child.UID {
		t.Errorf("the child was created again, want that of the first process")
	}
}

// The Lease of a shard names the ring. Renewing it keeps the labels and annotations of others, and it is released at
// the end.
func TestALeaseKeepsWhatOthersSet(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	p := start(t, namespace, "one", made("one"))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	read := func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(lease), lease) }
	controlplanetest.Eventually(t, "there is no Lease", read)
	if lease.Labels["alpha.sharding.timebertt.dev/controllerring"] != ring || ptr.Deref(lease.Spec.HolderIdentity, "") != "one" {
		t.Fatalf("the Lease has the labels %v and the holder %v, want the ring and the shard",
			lease.Labels, lease.Spec.HolderIdentity)
	}
	label(t, c, lease, `{"alpha.sharding.timebertt.dev/state":"ready"}`)
	annotate := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"theirs":"too"}}}`))
	if err := c.Patch(t.Context(), lease, annotate); err != nil {
		t.Fatal(err)
	}
	labelled := lease.Spec.RenewTime.DeepCopy()
	controlplanetest.Eventually(t, "the Lease is not renewed", func(ctx context.Context) error {
		if err := read(ctx); err != nil || lease.Spec.RenewTime.After(labelled.Time) {
			return err
		}
		return fmt.Errorf("it was renewed at %v, as at %v", lease.Spec.RenewTime, labelled)
	})
	if lease.Labels["alpha.sharding.timebertt.dev/state"] != "ready" || lease.Annotations["theirs"] != "too" {
		t.Errorf("after a renewal the Lease has the labels %v and the annotations %v, want those of others kept",
			lease.Labels, lease.Annotations)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("after the end the Lease is held by %q, want nobody", holder)
	}
}
