package component_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// idleOperator deploys an Assembly, and tells requests that look at the objects from those that do not.
type idleOperator struct {
	client   client.Client
	requests *controlplane.Requests
	root     *reconcilers.ResourceReconciler[*resources.Assembly]
	assembly *resources.Assembly
	observes atomic.Int64
	// forget has the next request look at the objects.
	forget atomic.Bool
	// last is the last step.
	last string

	// running is held by a request, because a controller runs no two requests for one resource at a time, and the test
	// makes requests of its own.
	running sync.Mutex
	// extra, policy and reference are inputs of the component that are not in the resource.
	extra             atomic.Bool
	policy, reference atomic.Value
}

func newIdleOperator(t *testing.T, kind string, deterministic bool) *idleOperator {
	t.Helper()
	c, namespace := live(t), plane.Namespace(t)
	config, requests := controlplane.CountRequests(plane.Config(t))
	mgr := newManager(t, config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	o := &idleOperator{client: c, requests: requests}
	o.policy.Store(generator.UpdatePolicy(""))
	o.reference.Store("1")
	node := &component.ComponentReconciler[*resources.Assembly]{
		Prefix:    componentPrefix,
		Inventory: component.Inventory{Kind: kind},
		Generator: &countingGenerator{deterministic: deterministic, Generator: generator.GeneratorFunc(func(
			ctx context.Context, namespace, name string, parameters generator.Unstructurable,
		) ([]client.Object, error) {
			objects, err := resources.AssemblyGenerator().Generate(ctx, namespace, name, parameters)
			if o.extra.Load() {
				objects = append(objects, partOf(namespace, "extra", "0"))
			}
			return objects, err
		})},
		Configure: func(_ context.Context, _ *resources.Assembly, configuration *generator.Configuration) error {
			configuration.UpdatePolicy = o.policy.Load().(generator.UpdatePolicy)
			return nil
		},
		References: func(context.Context, *resources.Assembly) (map[string]string, error) {
			return map[string]string{"reference": o.reference.Load().(string)}, nil
		},
	}
	o.root = &reconcilers.ResourceReconciler[*resources.Assembly]{
		Config:                      reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
		KeepResultAfterStatusUpdate: true, SyncStatusDuringFinalization: true, SkipStatusEvents: true,
		BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
			o.running.Lock()
			return ctx, reconcilers.Result{}, nil
		},
		AfterReconcile: func(
			_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			o.running.Unlock()
			return result, err
		},
		Reconciler: reconcilers.Sequence[*resources.Assembly]{
			&reconcilers.SyncReconciler[*resources.Assembly]{Sync: func(ctx context.Context, a *resources.Assembly) error {
				component.CountObserves(ctx, node, a, &o.observes)
				if o.forget.Swap(false) {
					component.ForgetTask(ctx, node, a)
				}
				return nil
			}},
			node,
		},
	}
	if err := o.root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	startManager(t, mgr)
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"a": []byte("b")}}
	secret.Namespace, secret.Name = namespace, "secret"
	often := partOf(namespace, "often", "2")
	often.Annotations[generator.SharedPrefix+"/"+generator.AnnotationReapplyInterval] = "1h"
	o.assembly = resources.NewAssembly(namespace, "all", partOf(namespace, "part", "0"), partOf(namespace, "other", "1"), secret, often)
	if err := c.Create(t.Context(), o.assembly); err != nil {
		t.Fatal(err)
	}
	return o
}

func startManager(t testing.TB, mgr ctrl.Manager) {
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

// settles waits until the component is ready and no request is made any more.
func (o *idleOperator) settles(t *testing.T) {
	t.Helper()
	what := o.last
	controlplanetest.Eventually(t, "it is not ready after "+what, func(ctx context.Context) error {
		before := o.observes.Load()
		controlplanetest.Rest(t, o.requests)
		if n := o.observes.Load(); n != before {
			return fmt.Errorf("%d observations", n-before)
		}
		return hasState(ctx, o.client, o.assembly, apis.ComponentReady)
	})
}

// reconcile makes one request, and returns its result and how often the objects were looked at.
func (o *idleOperator) reconcile(t *testing.T, now time.Time) (result reconcilers.Result, observes int64) {
	t.Helper()
	before := o.observes.Load()
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(o.assembly)}
	result, err := o.root.Reconcile(rtime.StashNow(t.Context(), now), request)
	if err != nil {
		t.Fatal(err)
	}
	return result, o.observes.Load() - before
}

// compare makes a request that does not look at the objects and one that does, and expects that both do the same:
// nothing.
func (o *idleOperator) compare(t *testing.T) {
	t.Helper()
	now := time.Now()
	// The first request after a change may have to look, as one that reads its own write back does.
	o.reconcile(t, now)
	o.requests.Reset()
	idle, looks := o.reconcile(t, now)
	if looks > 0 {
		t.Errorf("there are %d looks at the objects, want none, for nothing has changed", looks)
	}
	status := o.assembly.Status.DeepCopy()
	o.forget.Store(true)
	full, looks := o.reconcile(t, now)
	if looks != 1 {
		t.Errorf("there are %d looks at the objects, want 1", looks)
	}
	if diff := cmp.Diff(full, idle); diff != "" {
		t.Errorf("the result is another one, want the same (-full +idle):\n%s", diff)
	}
	if n := o.requests.Total(); n > 0 {
		t.Errorf("there are %d requests, want none: %s", n, o.requests)
	}
	if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(o.assembly), o.assembly); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(status, &o.assembly.Status); diff != "" {
		t.Errorf("the status is another one, want the same (-idle +full):\n%s", diff)
	}
}

// A component with nothing to do is not looked at, whatever brings it back, until something has changed; then what has changed is
// seen.
func TestRestEndsWithEachChange(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "Secret"} {
		for _, deterministic := range []bool{true, false} {
			t.Run(fmt.Sprintf("inventory=%s/deterministic=%v", or(kind, "status"), deterministic), func(t *testing.T) {
				t.Parallel()
				o := newIdleOperator(t, kind, deterministic)
				o.settles(t)
				o.compare(t)
				for _, step := range o.steps() {
					if step.only != "" && step.only != or(kind, "status") || step.random && deterministic {
						continue
					}
					o.last = step.name
					before := o.observes.Load()
					if err := step.change(t.Context()); err != nil {
						t.Fatalf("%s: %v", step.name, err)
					}
					controlplanetest.Eventually(t, step.name, step.until)
					if step.looks {
						controlplanetest.Eventually(t, "no look after "+step.name, func(context.Context) error {
							if o.observes.Load() == before {
								return errors.New("no look")
							}
							return nil
						})
					}
					o.settles(t)
					if looks := o.observes.Load() - before; (looks > 0) != step.looks {
						t.Errorf("%s: there are %d looks at the objects, want some: %t", step.name, looks, step.looks)
					}
					o.compare(t)
				}
				o.requests.Reset()
				later := time.Now().Add(61 * time.Minute)
				if _, looks := o.reconcile(t, later); looks != 1 || o.requests.Writes() == 0 {
					t.Errorf("there are %d looks and the requests %s, want 1 and a write", looks, o.requests)
				}
			})
		}
	}
}

// idleStep is a change while a component is idle.
type idleStep struct {
	name   string
	change func(ctx context.Context) error
	until  func(ctx context.Context) error
	// looks says whether the objects have to be looked at.
	looks bool
	// only says where the inventory is that it is about, empty for all; random, that the generator is not
	// deterministic.
	only   string
	random bool
}

func (o *idleOperator) steps() []idleStep {
	namespace := o.assembly.Namespace
	part, extra := partOf(namespace, "part", "0"), partOf(namespace, "extra", "0")
	merge := func(object client.Object, patch string, options ...client.PatchOption) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			return o.client.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
		}
	}
	touched := 0
	touch := func(ctx context.Context) error {
		touched++
		return merge(o.assembly, `{"metadata":{"labels":{"touched":"`+strconv.Itoa(touched)+`"}}}`)(ctx)
	}
	// Each is changed once: what is changed again and again is not corrected at once.
	other, often := partOf(namespace, "other", "1"), partOf(namespace, "often", "2")
	asDesired := func(ctx context.Context) error {
		for _, object := range []client.Object{part, other, often} {
			if err := isAsDesired(ctx, o.client, object); err != nil {
				return err
			}
		}
		return nil
	}
	exists := func(ctx context.Context) error {
		return o.client.Get(ctx, client.ObjectKeyFromObject(extra), &corev1.ConfigMap{})
	}
	at := func(ctx context.Context) error { return hasState(ctx, o.client, o.assembly, apis.ComponentReady) }
	return []idleStep{
		{name: "a touch", change: touch, until: at},
		{name: "drift", change: merge(part, `{"data":{"name":"x"}}`), until: asDesired, looks: true},
		{name: "a deletion", change: func(ctx context.Context) error { return o.client.Delete(ctx, other.DeepCopy()) }, until: asDesired, looks: true},
		{name: "a lost label", change: merge(often, `{"metadata":{"labels":null}}`), until: asDesired, looks: true},
		{name: "a field of others", change: merge(part, `{"metadata":{"labels":{"x":"y"}}}`, client.FieldOwner("x")), until: at},
		{name: "a spec", change: merge(o.assembly, `{"spec":{"updatePolicy":"Replace"}}`), until: at, looks: true},
		{name: "an annotation", change: merge(o.assembly, `{"metadata":{"annotations":{"`+componentPrefix+`/x":"y"}}}`), until: at, looks: true},
		{name: "a configuration", change: func(ctx context.Context) error {
			o.policy.Store(apis.UpdateApplyOverride)
			return touch(ctx)
		}, until: at, looks: true},
		{name: "a reference", change: func(ctx context.Context) error { o.reference.Store("2"); return touch(ctx) }, until: at, looks: true},
		{name: "another output", change: func(ctx context.Context) error { o.extra.Store(true); return touch(ctx) }, until: exists, looks: true, random: true},
		{name: "a damaged inventory", only: "status", change: func(ctx context.Context) error {
			o.assembly.Status.Inventory[0].Digest = "damaged"
			return o.client.Status().Update(ctx, o.assembly)
		}, until: func(ctx context.Context) error {
			if err := at(ctx); err != nil || o.assembly.Status.Inventory[0].Digest != "damaged" {
				return err
			}
			return fmt.Errorf("the inventory is damaged")
		}, looks: true},
	}
}

func isAsDesired(ctx context.Context, c client.Client, object client.Object) error {
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return err
	}
	if found.Data["name"] != object.GetName() || found.Labels[componentPrefix+"/"+generator.LabelOwnerID] == "" || len(found.Data) != 1 {
		return fmt.Errorf("it is %v with labels %v", found.Data, found.Labels)
	}
	return nil
}
