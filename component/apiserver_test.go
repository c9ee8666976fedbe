package component_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const componentPrefix = "assembly.espalier.test"

// startComponents starts a manager that deploys the Assemblies of a namespace, and that can be stopped before the test ends.
func startComponents(t testing.TB, config *rest.Config, namespace string, options assemblyOptions, change ...func(*reconcilers.Config)) *operator {
	t.Helper()
	config, requests := controlplane.CountRequests(config)
	mgr := newManager(t, config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	options.Config = reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)
	for _, f := range change {
		f(&options.Config)
	}
	root := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), options)
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatalf("set-up failed: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	t.Cleanup(stop)
	return &operator{requests: requests, stop: stop}
}

func partOf(namespace, name, order string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{generator.SharedPrefix + "/" + generator.AnnotationApplyOrder: order},
		},
		Data: map[string]string{"name": name},
	}
}

func hasState(ctx context.Context, c client.Client, a *resources.Assembly, state apis.ComponentState) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	if a.Status.State != state || a.Status.ObservedGeneration != a.Generation && state == apis.ComponentReady {
		return fmt.Errorf("the state is %q of generation %d, not %q of %d: %v", a.Status.State, a.Status.ObservedGeneration, state, a.Generation, a.Status.Conditions)
	}
	return nil
}

// TestComponentFromFirstToLast: a component from its roll-out to its deletion; at rest, no request is made.
func TestComponentFromFirstToLast(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	var objects []client.Object
	for i := range 9 {
		objects = append(objects, partOf(namespace, "part-"+strconv.Itoa(i), strconv.Itoa(i%3)))
	}
	assembly := resources.NewAssembly(namespace, "all", objects...)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	ready := func(what string) {
		t.Helper()
		controlplanetest.Eventually(t, what, func(ctx context.Context) error {
			return hasState(ctx, c, assembly, apis.ComponentReady)
		})
	}
	ready("it is not deployed")
	if len(assembly.Status.Inventory) != len(objects) {
		t.Errorf("the inventory has %d records, want %d", len(assembly.Status.Inventory), len(objects))
	}

	// L1: nothing is asked of the API server once all agrees.
	controlplanetest.Quiet(t, op.requests)

	part := &corev1.ConfigMap{}
	key := client.ObjectKeyFromObject(objects[4])
	get := func(ctx context.Context) error { return c.Get(ctx, key, part) }
	if err := get(t.Context()); err != nil {
		t.Fatal(err)
	}
	part.Data["name"] = "drifted"
	if err := c.Update(t.Context(), part, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "drift is not healed", func(ctx context.Context) error {
		if err := get(ctx); err != nil || part.Data["name"] != "part-4" {
			return fmt.Errorf("%v, %v", part.Data, err)
		}
		return nil
	})
	if err := c.Delete(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "what was deleted does not come back", get)
	ready("it is not whole again")

	controlplanetest.Eventually(t, "the component is not made smaller", func(ctx context.Context) error {
		// The operator may be about to write the status.
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		assembly.SetObjects(objects[:8]...)
		return c.Update(ctx, assembly)
	})
	isGone := func(object client.Object) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
			if apierrs.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is still there"), err)
		}
	}
	controlplanetest.Eventually(t, "what is dropped is not pruned", isGone(objects[8]))
	ready("it is not smaller")

	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the resource does not go", isGone(assembly))
	for _, object := range objects {
		if err := isGone(object)(t.Context()); err != nil {
			t.Errorf("%s: %v", object.GetName(), err)
		}
	}
}
