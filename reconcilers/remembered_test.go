package reconcilers_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache shows one of two extra children still, and not yet the one made instead: nothing may be deleted on its word.
func TestStaleCacheCausesNoDeleteOfTheLiveChild(t *testing.T) {
	cluster := newStaleCluster(t, changedChild())
	for _, name := range []string{"extra-a", "extra-b"} {
		extra := configMap.With(func(child *corev1.ConfigMap) { child.Name = name }).Object()
		if err := cluster.lagging.Client.Create(t.Context(), extra); err != nil {
			t.Fatal(err)
		}
	}
	cluster.catchUp(t)
	cluster.reconcile("two extras", "delete ConfigMap", "delete ConfigMap", "create ConfigMap", "update Widget/status")
	for key := range cluster.seen[configMapType] {
		if key.Name == "extra-a" {
			delete(cluster.seen[configMapType], key)
		}
	}
	cluster.reconcile("the cache knows of one deletion")
	cluster.reconcile("it still does")
	cluster.catchUp(t)
	cluster.reconcile("the cache caught up")
	if children := cluster.children(); len(children) != 1 || children[0].Name != configMap.Object().Name {
		t.Errorf("the children are %v, want %s alone", children, configMap.Object().Name)
	}
}

// A deletion that did not take hold, or not for ever, is noticed all the same.
func TestADeletionOfOursIsNotBelievedForEver(t *testing.T) {
	cluster := newStaleCluster(t, changedChild(desires(desiresNothing)))
	if err := cluster.lagging.Client.Create(t.Context(), configMap.Object()); err != nil {
		t.Fatal(err)
	}
	cluster.catchUp(t)
	cluster.reconcile("not desired", "delete ConfigMap", "update Widget/status")
	cluster.reconcile("the cache lags")
	cluster.now = cluster.now.Add(time.Hour)
	cluster.reconcile("it lags for longer than a cache may", "delete ConfigMap", "update Widget/status")
}

// What an author's function does to the child that it is shown must not count as the state of the cluster (invariant L11).
func TestAChildThatTheStatusSharesIsStillComparedWithTheCluster(t *testing.T) {
	ready := false
	cluster := newStaleCluster(t, func(*trace) widgetNode {
		child := reflectingChild(&trace{})
		desires(func(desired *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if ready {
				desired.Data["ready"] = "true"
			}
			return desired, nil
		})(child)
		child.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, actual *corev1.ConfigMap, _ error) {
			w.Status.Fields = actual.Data
		}
		return widgetSequence{child, &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
			w.Status.AddField("ready", "true")
			return nil
		}}}
	})
	cluster.reconcile("first", "create ConfigMap", "update Widget/status")
	for range 2 {
		cluster.catchUp(t)
		cluster.reconcile("again")
	}
	ready = true
	cluster.reconcile("desired otherwise", "update ConfigMap")
	if data := cluster.children()[0].Data; data["ready"] != "true" {
		t.Errorf("the data of the child are %v, want it ready", data)
	}
}

// A child without an owner stays when the resource goes, so the finalizer must not go on the word of a cache (invariant L3).
func TestL3FinalizerStaysForAChildThatTheCacheDoesNotShow(t *testing.T) {
	const finalizer = "test.espalier.dev/child"
	for name, node := range map[string]func(*trace) widgetNode{
		"of the child": func(calls *trace) widgetNode {
			child := reflectingChild(calls)
			withoutOwner(child)
			child.ChildObjectManager = &configMaps{Finalizer: finalizer, MergeBeforeUpdate: mergeConfigMap}
			return child
		},
		"around the child": func(calls *trace) widgetNode {
			child := reflectingChild(calls)
			withoutOwner(child)
			return &widgetFinalizer{Finalizer: finalizer, Reconciler: child,
				ReadyToClearFinalizer: func(ctx context.Context, _ *resources.Widget) bool {
					// The child that was asked to go may still be there; the cache is asked, as an author would.
					var list corev1.ConfigMapList
					return reconcilers.RetrieveConfigOrDie(ctx).List(ctx, &list) == nil && len(list.Items) == 0
				}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newStaleCluster(t, node)
			cluster.reconcile("first", "patch Widget", "create ConfigMap", "update Widget/status")
			live := &resources.Widget{}
			if err := cluster.lagging.Client.Get(t.Context(), widgetKey, live); err != nil {
				t.Fatal(err)
			}
			if err := cluster.lagging.Client.Delete(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			children := cluster.seen[configMapType]
			cluster.catchUp(t)
			cluster.seen[configMapType] = children

			cluster.calls.calls = nil
			if _, err := cluster.root.Reconcile(t.Context(), widgetRequest); err != nil {
				t.Fatal(err)
			}
			if n := len(cluster.children()); n != 0 {
				t.Errorf("%d children are left behind, want none, after %v", n, cluster.calls.calls)
			}
		})
	}
}

// What a client serves is a copy for its caller, and names the kind, as the clients of managers do.
func TestChildrenHaveTheirKind(t *testing.T) {
	var kinds []string
	cluster := newStaleCluster(t, func(*trace) widgetNode {
		child := reflectingChild(&trace{})
		child.ReflectChildStatusOnParent = func(_ context.Context, _ *resources.Widget, actual *corev1.ConfigMap, _ error) {
			kinds = append(kinds, actual.APIVersion+" "+actual.Kind)
		}
		return child
	})
	given := configMap.With(func(child *corev1.ConfigMap) { child.TypeMeta = metav1.TypeMeta{} }).Object()
	if err := cluster.lagging.Client.Create(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	cluster.catchUp(t)
	for _, seen := range cluster.seen[configMapType] {
		seen.(*corev1.ConfigMap).TypeMeta = metav1.TypeMeta{}
	}
	cluster.reconcile("there already")
	cluster.reconcile("again")
	for _, kind := range kinds {
		if kind != "v1 ConfigMap" {
			t.Errorf("a child says that it is a %q, want a \"v1 ConfigMap\"", kind)
		}
	}
	if len(kinds) == 0 {
		t.Error("no child was reflected, want some")
	}
}

var configMapType = reflect.TypeFor[*corev1.ConfigMap]()
