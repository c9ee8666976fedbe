package component_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// localReader is a generator that reads a Secret with the local client of its context.
type localReader struct {
	generator.Generator
	outcome atomic.Pointer[string]
}

func (g *localReader) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	text := fmt.Sprint(readLocally(ctx, namespace))
	g.outcome.Store(&text)
	return g.Generator.Generate(ctx, namespace, name, parameters)
}

// readLocally reads the Secret login with the local client of ctx.
func readLocally(ctx context.Context, namespace string) error {
	local, err := generator.LocalClientFromContext(ctx)
	if err != nil {
		return err
	}
	return local.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "login"}, &corev1.Secret{})
}

// A generator and the context of a hook cannot read more than the component may. A hook also gets the operator's client.
func TestLocalClientActsAsTheComponent(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	user := "system:serviceaccount:" + namespace + ":tenant"
	allow(t, c, namespace, "tenant", user, "get", "list", "watch", "create", "patch", "delete")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}}
	far := remotely(resources.NewAssembly(namespace, "far", partOf(namespace, "far", "0")))
	near := resources.NewAssembly(namespace, "near", partOf(namespace, "near", "0"))
	near.Spec.ServiceAccountName = "tenant"
	create(t, c, secret, kubeconfigSecret(t, namespace, plane.Config(t)))

	generator := &localReader{Generator: resources.AssemblyGenerator()}
	var locally, asOperator atomic.Pointer[error]
	options := assemblyOptions{DefaultServiceAccount: "tenant"}
	options.Hooks.PreReconcile = append(options.Hooks.PreReconcile,
		func(ctx context.Context, c client.Client, _ *resources.Assembly) error {
			local, own := readLocally(ctx, namespace), c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
			locally.Store(&local)
			asOperator.Store(&own)
			return nil
		})
	startWith(t, namespace, generator, options)
	refused := `secrets "login" is forbidden: User "` + user + `" cannot get resource "secrets" in API group "" in the namespace "` + namespace + `"`
	for _, assembly := range []*resources.Assembly{near, far} {
		create(t, c, assembly)
		isReady(t, c, assembly)
		if got := *generator.outcome.Load(); got != refused {
			t.Errorf("%s: the generator gets %s, want %s", assembly.Name, got, refused)
		}
		if err := *locally.Load(); !apierrs.IsForbidden(err) {
			t.Errorf("%s: with its context, a hook gets %v, want it forbidden", assembly.Name, err)
		}
		if err := *asOperator.Load(); err != nil {
			t.Errorf("%s: with its client, a hook gets %v", assembly.Name, err)
		}
		if err := c.Delete(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, "it does not go", goneFrom(c, assembly))
	}
}

// A component with a kubeconfig makes no request at rest, also where the client of the manager reads Secrets past the
// cache.
func TestKubeConfigIsReadFromTheCache(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	var requests atomic.Int64
	options := assemblyOptions{Configure: func(context.Context, *resources.Assembly, *generator.Configuration) error {
		requests.Add(1)
		return nil
	}}
	op := startWith(t, namespace, resources.AssemblyGenerator(), options)
	far := remotely(resources.NewAssembly(namespace, "far", partOf(namespace, "far", "0")))
	create(t, c, kubeconfigSecret(t, namespace, plane.Config(t)), far)
	isReady(t, c, far)
	controlplanetest.Quiet(t, op.requests)
	before := requests.Load()
	far.Labels = map[string]string{"a": "b"}
	op.requests.Reset()
	if err := c.Update(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not looked at", func(context.Context) error {
		if requests.Load() == before {
			return errors.New("no request")
		}
		return nil
	})
	controlplanetest.Rest(t, op.requests)
	if n := op.requests.Total(); n > 0 {
		t.Errorf("there are %d requests, want none: %s", n, op.requests)
	}
}

// startWith starts a manager that deploys what a generator makes of the Assemblies of a namespace. Its client reads
// Secrets past the cache.
func startWith(t *testing.T, namespace string, generator generator.Generator, options assemblyOptions) *operator {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	mgr := newManager(t, config, ctrl.Options{
		Cache:  cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	options.Config = reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)
	root := component.NewComponentRoot(componentPrefix, generator, options)
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatalf("set-up failed: %v", err)
	}
	startManager(t, mgr)
	return &operator{requests: requests}
}

// A cluster that a component could not be deployed to is forgotten when the component is deployed elsewhere.
func TestClustersThatNobodyUsesAreForgotten(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	mgr := newManager(t, plane.Config(t), ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	options := assemblyOptions{Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)}
	reader := &systemReader{Reader: options.Config.APIReader}
	reader.forbidden.Store(true)
	options.Config.APIReader = reader
	root := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), options)
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	startManager(t, mgr)
	assembly := remotely(resources.NewAssembly(namespace, "all", partOf(namespace, "part", "0")))
	create(t, c, kubeconfigSecret(t, namespace, plane.Config(t)), assembly)
	says(t, c, assembly, component.ReasonError, "the operator needs the permission to get namespaces")
	controlplanetest.Eventually(t, "it cannot be changed", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
			return err
		}
		assembly.Spec.KubeConfig = nil
		return c.Update(ctx, assembly)
	})
	isReady(t, c, assembly)
	if n := component.CountTargets(root.Reconciler.(assemblyNode)); n != 1 {
		t.Errorf("%d clusters are kept, want 1", n)
	}
}
