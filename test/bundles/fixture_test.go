// Package bundles_test deploys components of the kinds of objects that published software consists of, on a control
// plane with the controllers that such objects meet.
package bundles_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs:              []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	GarbageCollection: true,
	NamespaceDeletion: true,
	RoleAggregation:   controlplane.Real(),
	Jobs:              true,
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

const prefix = "bundles.espalier.test"

type options = component.Options[*resources.Assembly]

// startOperator starts an operator of the Assemblies of a namespace, whose requests are counted. It stops when the test
// ends.
func startOperator(t *testing.T, namespace string, made generator.Generator, o options) *controlplane.Requests {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	managerOptions := ctrl.Options{
		Scheme:  resources.NewScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	managerOptions.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		t.Fatalf("no manager: %v", err)
	}
	o.Config = reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)
	root := component.NewComponentRoot(prefix, made, o)
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatalf("set-up failed: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	return requests
}

// live returns a client that reads past every cache, and is not counted.
func live(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	return c
}

var eventually = controlplanetest.Eventually

// staysAtRest waits until requests end, and expects that none is made from then on: what a timer brings, which is a
// second or two at first, would come in this time. Between the looks, it calls during.
func staysAtRest(t testing.TB, requests *controlplane.Requests, during ...func()) {
	t.Helper()
	controlplanetest.Quiet(t, requests)
	for range 3 {
		for _, f := range during {
			f()
		}
		controlplanetest.Rest(t, requests)
	}
	if n := requests.Total(); n > 0 {
		t.Errorf("%d requests after they had ended:\n%s", n, requests)
	}
}

// isReady checks that the Assembly is ready in its present generation.
func isReady(c client.Client, a *resources.Assembly) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		if a.Status.State != apis.ComponentReady || a.Status.ObservedGeneration != a.Generation {
			return fmt.Errorf("%s of generation %d, not %d: %v",
				a.Status.State, a.Status.ObservedGeneration, a.Generation, a.Status.Conditions)
		}
		return nil
	}
}

// says checks that the condition has the reason and contains the text.
func says(c client.Client, a *resources.Assembly, reason, text string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		for _, condition := range a.Status.Conditions {
			if condition.Reason == reason && strings.Contains(condition.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", a.Status.Conditions)
	}
}

// gone checks that the objects do not exist.
func gone(c client.Client, objects ...client.Object) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for _, object := range objects {
			found := object.DeepCopyObject().(client.Object)
			err := c.Get(ctx, client.ObjectKeyFromObject(object), found)
			if !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("%s is there, deleted at %v", object.GetName(), found.GetDeletionTimestamp()), err)
			}
		}
		return nil
	}
}

// must fails the test at once after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
