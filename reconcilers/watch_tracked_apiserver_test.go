package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// version notes in the status which version of an object was read, or that there is none.
func version(w *resources.Widget, obj client.Object, err error) error {
	w.Status.AddField("read", obj.GetResourceVersion())
	return client.IgnoreNotFound(err)
}

// readsSettings is a node that tracks the ConfigMap called settings and adds no watch.
func readsSettings(obj client.Object) widgetNode {
	return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
		read := obj.DeepCopyObject().(client.Object)
		key := types.NamespacedName{Namespace: w.Namespace, Name: "settings"}
		return version(w, read, reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, read))
	}}
}

// listsSettings is readsSettings for a list of the ConfigMaps with a label.
func listsSettings[L client.ObjectList](list L, first func(L) client.Object) widgetNode {
	return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
		read := list.DeepCopyObject().(L)
		err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, read,
			client.InNamespace(w.Namespace), client.MatchingLabels{"of": "settings"})
		return version(w, first(read), err)
	}}
}

func newSettings(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "settings", Labels: map[string]string{"of": "settings"},
	}}
}

// follows fails unless a Widget is reconciled whenever the settings are created, changed and deleted.
func follows(t *testing.T, c client.Client, w *resources.Widget, settings *corev1.ConfigMap) {
	t.Helper()
	reads := func() {
		t.Helper()
		eventually(t, "the settings are not followed", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
			if read, ok := w.Status.Fields["read"]; !ok || read != settings.ResourceVersion {
				return fmt.Errorf("version %q is read, expected %q", read, settings.ResourceVersion)
			}
			return nil
		})
	}
	reads()
	if err := c.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads()
	settings.Data = map[string]string{"color": "blue"}
	if err := c.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads()
	if err := c.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	settings.ResourceVersion = ""
	reads()
}

// A type that no node watches is watched from when it is tracked first, in whatever representation it is read.
func TestATrackedTypeIsWatched(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(kind)
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(kind)
	metas := &metav1.PartialObjectMetadataList{}
	metas.SetGroupVersionKind(kind.GroupVersion().WithKind("ConfigMapList"))
	untypeds := &unstructured.UnstructuredList{}
	untypeds.SetGroupVersionKind(kind.GroupVersion().WithKind("ConfigMapList"))
	for name, node := range map[string]widgetNode{
		"typed":        readsSettings(&corev1.ConfigMap{}),
		"metadata":     readsSettings(meta),
		"unstructured": readsSettings(untyped),
		"duck":         readsSettings(&duckWidget{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}),
		"list": listsSettings(&corev1.ConfigMapList{}, func(l *corev1.ConfigMapList) client.Object {
			return &append(l.Items, corev1.ConfigMap{})[0]
		}),
		"metadata list": listsSettings(metas, func(l *metav1.PartialObjectMetadataList) client.Object {
			return &append(l.Items, metav1.PartialObjectMetadata{})[0]
		}),
		"unstructured list": listsSettings(untypeds, func(l *unstructured.UnstructuredList) client.Object {
			return &append(l.Items, unstructured.Unstructured{})[0]
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
				return &widgetRoot{Config: config, Reconciler: node}
			})
			c := live(t)
			follows(t, c, op.createWidget(t, c), newSettings(op.namespace))
		})
	}
}

func TestATrackedTypeOfAnotherClusterIsWatched(t *testing.T) {
	t.Parallel()
	elsewhere := plane.Namespace(t)
	other := clusterOf(t, elsewhere)
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		foreign := config.WithCluster(other)
		return &widgetRoot{
			Config: config,
			Setup: func(_ context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
				return mgr.Add(other)
			},
			Reconciler: &widgetWithConfig{
				Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return foreign, nil },
				Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
					read := &corev1.ConfigMap{}
					key := types.NamespacedName{Namespace: elsewhere, Name: "settings"}
					return version(w, read, reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, read))
				}},
			},
		}
	})
	c := live(t)
	follows(t, c, op.createWidget(t, c), newSettings(elsewhere))
}

// The operator that takes over watches what it tracks.
func TestATrackedTypeIsWatchedAfterLeaderElection(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	leases := coordinationv1.NewForConfigOrDie(plane.Config(t))
	lead := func(identity string) *operator {
		// Not the lock of the manager, because its recorder outlives the test.
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		op, _ := startOperatorIn(t, namespace, ctrl.Options{
			LeaderElection: true, LeaderElectionResourceLockInterface: lock,
			LeaderElectionReleaseOnCancel: true, RetryPeriod: new(100 * time.Millisecond),
		}, func(config reconcilers.Config) *widgetRoot {
			return &widgetRoot{Config: config, Reconciler: readsSettings(&corev1.ConfigMap{})}
		})
		return op
	}
	c := live(t)
	first := lead("first")
	<-first.Elected()
	second := lead("second")
	w := first.createWidget(t, c)
	follows(t, c, w, newSettings(namespace))
	first.stop()
	<-second.Elected()
	follows(t, c, w, newSettings(namespace))
}

// One event asks the tracker once, whoever added the watch of the type.
func TestATrackedTypeIsWatchedOnce(t *testing.T) {
	twice := widgetSequence{readsSettings(&corev1.ConfigMap{}), readsSettings(&corev1.ConfigMap{})}
	watches := func(add func(context.Context, *reconcilers.Builder) error) widgetNode {
		return widgetSequence{&widgetSync{
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				return add(ctx, bldr)
			},
			Sync: func(context.Context, *resources.Widget) error { return nil },
		}, twice}
	}
	for name, node := range map[string]widgetNode{
		"by two nodes": twice,
		"and a child":  widgetSequence{configMapChild("a"), twice},
		"and added with WatchTracked": watches(func(ctx context.Context, bldr *reconcilers.Builder) error {
			return reconcilers.WatchTracked(ctx, bldr, &corev1.ConfigMap{})
		}),
		"and added by hand": watches(func(ctx context.Context, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counting := &countingTracker{asked: map[string]int{}}
			namespace := plane.Namespace(t)
			c := live(t)
			// What was added by hand is known by the objects that it shows.
			there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}}
			if err := c.Create(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			op, _ := startOperatorIn(t, namespace, ctrl.Options{}, func(config reconcilers.Config) *widgetRoot {
				counting.Tracker = config.Tracker
				config.Tracker = counting
				return &widgetRoot{Config: config, Reconciler: node}
			})
			w := op.createWidget(t, c)
			eventually(t, "nothing is read", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
					return err
				}
				if _, ok := w.Status.Fields["read"]; !ok {
					return errors.New("no version")
				}
				return nil
			})
			// The second is there to know when the first has been dealt with.
			for _, name := range []string{"first", "second"} {
				obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				if err := c.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				eventually(t, "no event", func(context.Context) error {
					if counting.count(name) == 0 {
						return errors.New("the tracker is not asked")
					}
					return nil
				})
			}
			if n := counting.count("first"); n != 1 {
				t.Errorf("the tracker is asked %d times for one event, want once", n)
			}
		})
	}
}

// The watch that tracking starts costs one request. Requests that find it running cost none (invariant L1).
func TestL1TrackingCostsNoRequestOnceTheTypeIsWatched(t *testing.T) {
	t.Parallel()
	op, made := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		return &widgetRoot{Config: config, Reconciler: readsSettings(&corev1.ConfigMap{}), SkipStatusUpdate: true}
	})
	w := op.createWidget(t, live(t))
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(w)}
	if _, err := made[0].Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	// The watch follows the list, for which alone the request waits.
	eventually(t, "the type is not watched", func(context.Context) error {
		if !strings.Contains(op.requests.String(), "watch /api/v1/") {
			return fmt.Errorf("the requests are\n%s", op.requests)
		}
		return nil
	})
	op.requests.Reset()
	for range 10 {
		if _, err := made[0].Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if n := op.requests.Total() + op.requests.Watches(); n != 0 {
		t.Errorf("there are requests, want none:\n%s", op.requests)
	}
}

// A type that a SyncReconciler says it watches is watched from the start, also before the first object is tracked.
func TestUsesWithWatchAddsTheWatch(t *testing.T) {
	t.Parallel()
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		node := readsSettings(&corev1.ConfigMap{}).(*widgetSync)
		node.Uses = []reconcilers.Access{
			{Object: &corev1.ConfigMap{}, Verbs: []string{"get", "list", "watch"}},
			// Neither is to be watched, and there are no rights to watch them.
			{Verbs: []string{"watch"}},
			{Object: &corev1.Secret{}, Verbs: []string{"get", "list"}},
			{Object: &corev1.Pod{}, Subresource: "log", Verbs: []string{"watch"}},
		}
		return &widgetRoot{Config: config, Reconciler: node}
	})
	eventually(t, "the ConfigMaps are not watched", func(context.Context) error {
		for request := range op.requests.Counts() {
			if request.Verb == "watch" && request.Path == "/api/v1/namespaces/"+op.namespace+"/configmaps" {
				return nil
			}
		}
		return errors.New(op.requests.String())
	})
	for request := range op.requests.Counts() {
		if request.Path == "/api/v1/namespaces/"+op.namespace+"/secrets" || request.Path == "/api/v1/namespaces/"+op.namespace+"/pods" {
			t.Errorf("there is the request %s, want none of Secrets and Pods", request)
		}
	}
	c := live(t)
	follows(t, c, op.createWidget(t, c), newSettings(op.namespace))
}
