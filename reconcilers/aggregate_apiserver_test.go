package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type configMapAggregate = reconcilers.AggregateReconciler[*corev1.ConfigMap]

// startAggregate starts a manager with the root that newRoot returns, in a namespace of its own. It stops with the test.
func startAggregate[T client.Object](
	t *testing.T, namespace string, options ctrl.Options, newRoot func(reconcilers.Config) *reconcilers.AggregateReconciler[T],
) (*operator, *reconcilers.AggregateReconciler[T]) {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	mgr := newManager(t, config, options)
	root := newRoot(reconcilers.NewConfig(mgr, nil, time.Hour))
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
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync, want it to")
	}
	return &operator{Manager: mgr, namespace: namespace, requests: requests, stop: stop}, root
}

// catalog lists the inputs of its namespace in a ConfigMap, as long as there is one.
func catalog(namespace string) func(reconcilers.Config) *configMapAggregate {
	return func(config reconcilers.Config) *configMapAggregate {
		return &configMapAggregate{
			Name:    "Catalog",
			Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "catalog"}},
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&resources.Widget{}, reconcilers.EnqueueTracked(ctx))
				return nil
			},
			Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: func(ctx context.Context, catalog *corev1.ConfigMap) error {
				inputs := &resources.WidgetList{}
				err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, inputs, client.InNamespace(namespace), client.MatchingLabels{"listed": "true"})
				if err != nil {
					return err
				}
				catalog.Data = map[string]string{}
				for _, input := range inputs.Items {
					catalog.Data[input.Name] = input.Spec.Fields["color"]
				}
				return nil
			}},
			DesiredResource: func(_ context.Context, catalog *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if _, unwanted := catalog.Data["unwanted"]; unwanted {
					return nil, nil
				}
				return catalog, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = maps.Clone(desired.Data) },
			Config:            config,
		}
	}
}

func listed(namespace, name, color string) *resources.Widget {
	return &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"listed": "true"}},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"color": color}},
	}
}

func hasData(ctx context.Context, c client.Client, key types.NamespacedName, expected string) error {
	catalog := &corev1.ConfigMap{}
	if err := c.Get(ctx, key, catalog); err != nil {
		return err
	}
	if got := fmt.Sprint(catalog.Data); got != expected {
		return fmt.Errorf("the data is %s, expected %s", got, expected)
	}
	return nil
}

// followed waits until the cache shows the object of that name as it is: a manager must not be stopped in the middle of an event,
// which leaves a goroutine of its cache behind.
func followed[T client.Object](t *testing.T, op *operator, c client.Client, name string, empty T) {
	t.Helper()
	eventually(t, "the cache does not follow", func(ctx context.Context) error {
		key := types.NamespacedName{Namespace: op.namespace, Name: name}
		cached, actual := empty.DeepCopyObject().(T), empty.DeepCopyObject().(T)
		if err := errors.Join(client.IgnoreNotFound(op.GetClient().Get(ctx, key, cached)), client.IgnoreNotFound(c.Get(ctx, key, actual))); err != nil {
			return err
		}
		if is, was := actual.GetResourceVersion(), cached.GetResourceVersion(); is != was {
			return fmt.Errorf("it is at version %q, not %q", was, is)
		}
		return nil
	})
}

// steadyAggregate waits until ten reconciles in a row make no request. The controller may be about to record an event of what it
// did just before, so once is not enough.
func steadyAggregate[T client.Object](t *testing.T, op *operator, root *reconcilers.AggregateReconciler[T]) {
	t.Helper()
	witness := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "witness"}}
	eventually(t, "requests do not end", func(ctx context.Context) error {
		op.flushEvents(t, witness)
		op.requests.Reset()
		for range 10 {
			if _, err := root.Reconcile(ctx, root.Request); err != nil {
				return err
			}
		}
		op.flushEvents(t, witness)
		if op.requests.Total() != 1 {
			return fmt.Errorf("10 reconciles made more requests than the one for the test's own event:\n%s", op.requests)
		}
		return nil
	})
}

// The object is made at the start, without any event. It then follows its inputs, comes back when a user deletes it,
// goes when it is not desired, and costs nothing in between.
func TestAggregateOnARealAPIServer(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]ctrl.Options{
		"alone":         {},
		"with a leader": {LeaderElection: true, LeaderElectionID: "aggregate", LeaderElectionReleaseOnCancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := live(t)
			namespace := plane.Namespace(t)
			options.LeaderElectionNamespace = namespace
			op, root := startAggregate(t, namespace, options, catalog(namespace))
			key := root.Request.NamespacedName
			has := func(what, expected string) {
				t.Helper()
				eventually(t, what, func(ctx context.Context) error { return hasData(ctx, c, key, expected) })
			}
			has("it is not made at the start", "map[]")
			if options.LeaderElection {
				followed(t, op, c, key.Name, &corev1.ConfigMap{})
				// The election makes requests of its own.
				return
			}
			steadyAggregate(t, op, root)

			input := listed(namespace, "a", "blue")
			if err := c.Create(t.Context(), input); err != nil {
				t.Fatal(err)
			}
			has("it does not follow a new input", "map[a:blue]")
			steadyAggregate(t, op, root)
			input.Spec.Fields["color"] = "green"
			if err := c.Update(t.Context(), input); err != nil {
				t.Fatal(err)
			}
			has("it does not follow its input", "map[a:green]")
			steadyAggregate(t, op, root)

			if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
				t.Fatal(err)
			}
			has("it does not come back", "map[a:green]")
			steadyAggregate(t, op, root)

			unwanted := listed(namespace, "unwanted", "")
			if err := c.Create(t.Context(), unwanted); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it does not go", func(ctx context.Context) error {
				err := c.Get(ctx, key, &corev1.ConfigMap{})
				if apierrs.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("it is there: %v", err)
			})
			steadyAggregate(t, op, root)
			if err := c.Delete(t.Context(), unwanted); err != nil {
				t.Fatal(err)
			}
			has("it is not made again once it is desired again", "map[a:green]")
			followed(t, op, c, "unwanted", &resources.Widget{})
			followed(t, op, c, key.Name, &corev1.ConfigMap{})
		})
	}
}

// recordedQueue is a queue that records what is added to it.
type recordedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcilers.Request]
	added *requestLog
}

func (q recordedQueue) Add(req reconcilers.Request) {
	q.added.add(req)
	q.TypedRateLimitingInterface.Add(req)
}

type requestLog struct {
	mu    sync.Mutex
	names []string
}

func (l *requestLog) add(req reconcilers.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, req.Name)
}

func (l *requestLog) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.names)
}

// record has the queue of the controller record what is added to it.
func (l *requestLog) record(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	bldr.WithOptions(controller.Options{
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcilers.Request]) workqueue.TypedRateLimitingInterface[reconcilers.Request] {
			return recordedQueue{workqueue.NewTypedRateLimitingQueue(limiter), l}
		},
	})
	return nil
}

// composed is an option that an author made of others.
type composed []builder.ForOption

func (c composed) ApplyToFor(input *builder.ForInput) {
	for _, option := range c {
		option.ApplyToFor(input)
	}
}

// Other objects of the type do not reach the queue. The author's predicates hold all the same.
func TestAggregateIsWokenByItsOwnEventsOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		filtered bool
		options  func(builder.Predicates) []builder.ForOption
		// others tells that other names get as far as the queue.
		others bool
	}{
		"no options":        {options: func(builder.Predicates) []builder.ForOption { return nil }},
		"predicates":        {filtered: true, options: func(p builder.Predicates) []builder.ForOption { return []builder.ForOption{p} }},
		"a composed option": {filtered: true, others: true, options: func(p builder.Predicates) []builder.ForOption { return []builder.ForOption{composed{p}} }},
	} {
		t.Run(name, func(t *testing.T) {
			c := live(t)
			namespace := plane.Namespace(t)
			added, ran, seen := &requestLog{}, &requestLog{}, &requestLog{}
			notIgnored := predicate.NewPredicateFuncs(func(obj client.Object) bool {
				seen.add(reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
				return obj.GetLabels()["ignored"] == ""
			})
			op, _ := startAggregate(t, namespace, ctrl.Options{}, func(config reconcilers.Config) *configMapAggregate {
				return &configMapAggregate{
					Request:           reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "ours"}},
					Setup:             added.record,
					SetupForOptions:   test.options(builder.WithPredicates(notIgnored)),
					DesiredResource:   func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil },
					MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
					AfterReconcile: func(_ context.Context, req reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
						ran.add(req)
						return result, err
					},
					Config: config,
				}
			})
			object := func(name string, labels map[string]string) *corev1.ConfigMap {
				t.Helper()
				made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
				if err := c.Create(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				return made
			}
			eventually(t, "it is not due at the start", func(context.Context) error {
				if len(ran.get()) == 0 {
					return errors.New("nothing has run")
				}
				return nil
			})
			started := len(added.get())
			if test.filtered {
				ours := object("ours", map[string]string{"ignored": "true"})
				object("others", nil)
				eventually(t, "the author's predicate is not asked", func(context.Context) error {
					if slices.Contains(seen.get(), "others") {
						return nil
					}
					return fmt.Errorf("it has seen %v", seen.get())
				})
				if got := added.get()[started:]; slices.Contains(got, "ours") {
					t.Errorf("the queue was given %v, want nothing of ours, which the author's predicate ignores", got)
				}
				ours.Labels = nil
				if err := c.Update(t.Context(), ours); err != nil {
					t.Fatal(err)
				}
			} else {
				object("others", nil)
				object("ours", nil)
			}
			eventually(t, "its event does not wake it", func(ctx context.Context) error {
				err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "ours"}, &corev1.ConfigMap{})
				if apierrs.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("it is there: %v", err)
			})
			followed(t, op, c, "ours", &corev1.ConfigMap{})
			followed(t, op, c, "others", &corev1.ConfigMap{})
			if got := added.get(); slices.Contains(got, "others") != test.others {
				t.Errorf("the queue was given %v, want others in it: %t", got, test.others)
			}
		})
	}
}

// Invariant L1: what the server defaults is written once, whether what is desired is made anew each time or from what is there, and
// also if the status changes meanwhile.
func TestL1AggregateWithDefaultsIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"made anew": true, "made from what is there": false} {
		t.Run(name, func(t *testing.T) {
			c := live(t)
			namespace := plane.Namespace(t)
			child := deploymentChild()
			op, root := startAggregate(t, namespace, ctrl.Options{}, func(config reconcilers.Config) *reconcilers.AggregateReconciler[*appsv1.Deployment] {
				return &reconcilers.AggregateReconciler[*appsv1.Deployment]{
					Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "shared"}},
					DesiredResource: func(ctx context.Context, deployment *appsv1.Deployment) (*appsv1.Deployment, error) {
						w := listed(namespace, "shared", "")
						w.Spec.Fields["image"] = "example.com/app:1"
						desired, err := child.DesiredChild(ctx, w)
						if fresh {
							return desired, err
						}
						deployment.Spec = desired.Spec
						return deployment, err
					},
					MergeBeforeUpdate: child.MergeBeforeUpdate,
					Config:            config,
				}
			})
			deployment := &appsv1.Deployment{}
			key := root.Request.NamespacedName
			eventually(t, "it is not made", func(ctx context.Context) error { return c.Get(ctx, key, deployment) })
			steadyAggregate(t, op, root)
			op.requests.Reset()
			for i := range 3 {
				eventually(t, "the status cannot be written", func(ctx context.Context) error {
					if err := c.Get(ctx, key, deployment); err != nil {
						return err
					}
					deployment.Status.ObservedGeneration = deployment.Generation
					deployment.Status.Replicas = int32(i + 1)
					return c.Status().Update(ctx, deployment)
				})
				followed(t, op, c, key.Name, deployment)
				if _, err := root.Reconcile(t.Context(), root.Request); err != nil {
					t.Fatal(err)
				}
			}
			if op.requests.Writes() > 0 {
				t.Errorf("there are %d writes, want none:\n%s", op.requests.Writes(), op.requests)
			}
			steadyAggregate(t, op, root)
			if err := c.Get(t.Context(), key, deployment); err != nil {
				t.Fatal(err)
			}
			if deployment.Generation != 1 || deployment.Spec.RevisionHistoryLimit == nil {
				t.Errorf("the generation is %d, and the history limit defaulted: %t, want 1 and that it is",
					deployment.Generation, deployment.Spec.RevisionHistoryLimit != nil)
			}
		})
	}
}

// A child is owned by the object once that is there: the event of the new object brings the tree back.
func TestAggregateOwnsChildrenOnceItExists(t *testing.T) {
	t.Parallel()
	c := live(t)
	namespace := plane.Namespace(t)
	type child = reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]
	guarded := func(guard bool) func(reconcilers.Config) *configMapAggregate {
		return func(config reconcilers.Config) *configMapAggregate {
			return &configMapAggregate{
				Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("owner-", guard)}},
				Reconciler: &reconcilers.IfThen[*corev1.ConfigMap]{
					If: func(_ context.Context, owner *corev1.ConfigMap) bool { return !guard || owner.UID != "" },
					Then: &child{
						DesiredChild: func(_ context.Context, owner *corev1.ConfigMap) (*corev1.Secret, error) {
							return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}, nil
						},
						MergeBeforeUpdate:          func(current, desired *corev1.Secret) { current.Data = desired.Data },
						ReflectChildStatusOnParent: func(context.Context, *corev1.ConfigMap, *corev1.Secret, error) {},
					},
				},
				MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				Config:            config,
			}
		}
	}
	for _, guard := range []bool{true, false} {
		op, root := startAggregate(t, namespace, ctrl.Options{}, guarded(guard))
		key := root.Request.NamespacedName
		eventually(t, "there is no child", func(ctx context.Context) error {
			owner, child := &corev1.ConfigMap{}, &corev1.Secret{}
			if err := c.Get(ctx, key, owner); err != nil {
				return err
			}
			if err := c.Get(ctx, key, child); err != nil {
				return err
			}
			if !metav1.IsControlledBy(child, owner) {
				return fmt.Errorf("it is owned by %v", child.OwnerReferences)
			}
			return nil
		})
		steadyAggregate(t, op, root)
		if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the child does not come back", func(ctx context.Context) error { return c.Get(ctx, key, &corev1.Secret{}) })
		steadyAggregate(t, op, root)
		op.stop()
	}
}
