package componentfaults_test

import (
	"context"
	"errors"
	"fmt"
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

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operate runs an operator with watches for the resources of a namespace.
func operate(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	mgr := newManager(t, config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	root := component.NewComponentRoot(faultPrefix, resources.AssemblyGenerator(), component.Options[*resources.Assembly]{
		Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
	})
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
}

// assemble creates a component, and returns a function that waits until it is ready.
func assemble(t *testing.T, c client.Client, a *resources.Assembly) (ready func(what string)) {
	t.Helper()
	if err := c.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return func(what string) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error { return hasState(ctx, c, a, apis.ComponentReady) })
	}
}

// liveWithTypes is a client that knows definitions of types, too.
func liveWithTypes(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := resources.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func isGone(c client.Client, object client.Object) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		if apierrs.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	}
}

func TestTypeDeletedBehindOurBack(t *testing.T) {
	t.Parallel()
	c, namespace := liveWithTypes(t, plane.Config(t)), plane.Namespace(t)
	operate(t, plane.Config(t), namespace)
	p := platformOf{namespace, "behind-our-back-x"}
	a := resources.NewAssembly(namespace, "platform", p.first()...)
	ready := assemble(t, c, a)
	ready("it is not deployed")
	crd, own := p.definition(), p.gadget(namespace, "own")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	before := crd.UID
	if err := c.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "type and instance do not come back", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil || crd.UID == before {
			return fmt.Errorf("%s is not a new one: %w", crd.Name, err)
		}
		return c.Get(ctx, client.ObjectKeyFromObject(own), own)
	})
	ready("it is not whole again")
	if err := c.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resource does not go", isGone(c, a))
	eventually(t, "the type stays", isGone(c, crd))
}

func TestNamespaceTerminates(t *testing.T) {
	t.Parallel()
	c, namespace, other := live(t), plane.Namespace(t), plane.Namespace(t)
	operate(t, plane.Config(t), namespace)
	p := platformOf{other, "x"}
	one, two := p.configMap("one", "0", "1"), p.configMap("two", "1", "2")
	a := resources.NewAssembly(namespace, "platform", one)
	ready := assemble(t, c, a)
	ready("it is not deployed")

	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}
	if err := c.Delete(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	patch := a.DeepCopy()
	patch.SetObjects(one, two)
	if err := c.Patch(t.Context(), patch, client.MergeFrom(a)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status does not say what is waited for", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		condition := a.Status.GetCondition(apis.ConditionReady)
		if condition == nil || condition.ObservedGeneration != a.Generation || !strings.Contains(condition.Message, other) ||
			a.Status.State == apis.ComponentReady {
			return fmt.Errorf("the state is %s: %v", a.Status.State, condition)
		}
		return nil
	})

	// What a namespace controller does.
	if err := c.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(space), space); err != nil {
		t.Fatal(err)
	}
	space.Spec.Finalizers = nil
	if err := c.SubResource("finalize").Update(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the objects do not come back", func(ctx context.Context) error {
		for _, object := range []client.Object{one, two} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), &corev1.ConfigMap{}); err != nil {
				return err
			}
		}
		return nil
	})
	ready("it is not whole again")
	if err := c.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resource does not go", isGone(c, a))
}

func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	env, err := controlplane.Start(t.Context(), controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := liveWithTypes(t, env.Config())
	const namespace = "default"
	config, requests := controlplane.CountRequests(env.Config())
	operate(t, config, namespace)

	p := platformOf{namespace, "run-0-x"}
	gate := p.configMap("gate", "1", "closed")
	annotations := gate.GetAnnotations()
	annotations[faultPrefix+"/"+generator.AnnotationReadyWhen] = "object.data.open == 'yes'"
	gate.SetAnnotations(annotations)
	a := resources.NewAssembly(namespace, "platform", append(p.first(), gate)...)
	ready := assemble(t, c, a)
	eventually(t, "the wave does not begin", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKeyFromObject(gate), &corev1.ConfigMap{})
	})
	restart(t, env)
	eventually(t, "the gate does not open", func(ctx context.Context) error {
		open := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"open":"yes"}}`))
		return c.Patch(ctx, gate.DeepCopyObject().(client.Object), open, client.FieldOwner("somebody"))
	})
	ready("it is not deployed")
	for request, n := range requests.Counts() {
		if request.Verb == "create" && strings.HasSuffix(request.Path, "/rolebindings") && n != 1 {
			t.Errorf("%d × %s", n, request)
		}
	}

	if err := c.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	restart(t, env)
	eventually(t, "the resource does not go", isGone(c, a))
	for _, object := range p.first() {
		if object.GetObjectKind().GroupVersionKind().Kind == "Gadget" {
			// Its type is gone as well.
			continue
		}
		eventually(t, object.GetName()+" does not go", isGone(c, object))
	}
}

func restart(t *testing.T, env *controlplane.Environment) {
	t.Helper()
	if err := env.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := env.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
}
