package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// trackedChild is a child that the resource does not own: it must be tracked for the resource to hear of it.
func trackedChild(name string) widgetNode {
	node := configMapChild(name)
	node.Finalizer = "test.espalier.dev/" + name
	node.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
		// The tests share an API server, and past the cache a node would take the children of others for its own.
		return []client.ListOption{client.InNamespace(w.Namespace), client.MatchingLabels{"part": name}}
	}
	return node
}

// One type is watched once, also where two configs track it, and an event is for the trackers of both.
func TestWithConfigOfAnotherTracker(t *testing.T) {
	t.Parallel()
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		another := config.WithTracker()
		return &widgetRoot{
			Config: config,
			Reconciler: widgetSequence{
				trackedChild("home"),
				&widgetWithConfig{
					Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return another, nil },
					Reconciler: trackedChild("another"),
				},
			},
		}
	})
	c := live(t)
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "another"} {
		child := &corev1.ConfigMap{}
		is := func(other types.UID) func(context.Context) error {
			return func(ctx context.Context) error {
				err := c.Get(ctx, types.NamespacedName{Namespace: op.namespace, Name: "widget-" + name}, child)
				if err == nil && child.UID == other {
					err = fmt.Errorf("it is the old one")
				}
				return err
			}
		}
		eventually(t, name+" is not created", is(""))
		old := child.UID
		if err := c.Delete(t.Context(), child); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" does not come back", is(old))
	}
}

// A child in another cluster is watched there: nothing else tells that it is gone.
func TestWithConfigWatchesChildrenInTheirCluster(t *testing.T) {
	t.Parallel()
	elsewhere := plane.Namespace(t)
	other := clusterOf(t, elsewhere)
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		foreign := config.WithCluster(other)
		child := trackedChild("a").(*configMapNode)
		child.ListOptions = func(context.Context, *resources.Widget) []client.ListOption {
			return []client.ListOption{client.InNamespace(elsewhere), client.MatchingLabels{"part": "a"}}
		}
		at := child.DesiredChild
		child.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			desired, err := at(ctx, w)
			desired.Namespace = elsewhere
			return desired, err
		}
		return &widgetRoot{
			Config: config,
			Setup: func(_ context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
				return mgr.Add(other)
			},
			Reconciler: &widgetWithConfig{
				Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return foreign, nil },
				Reconciler: child,
			},
		}
	})
	c := live(t)
	w := op.createWidget(t, c)
	child := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: elsewhere, Name: w.Name + "-a"}
	eventually(t, "it is not created", func(ctx context.Context) error { return c.Get(ctx, key, child) })
	old := child.UID
	if err := c.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it does not come back", func(ctx context.Context) error {
		if err := c.Get(ctx, key, child); err != nil || child.UID != old {
			return err
		}
		return fmt.Errorf("it is the old one")
	})
}

// clusterOf returns a cluster in which only one namespace is in sight, which is out of sight for the manager.
func clusterOf(t *testing.T, namespace string) cluster.Cluster {
	t.Helper()
	other, err := cluster.New(plane.Config(t), func(options *cluster.Options) {
		options.Scheme = resources.NewScheme()
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// The way to hear of another cluster that the documentation of WithConfig shows: the namespace that is tracked is out
// of sight for the manager.
func TestWithConfigOfAnotherCluster(t *testing.T) {
	t.Parallel()
	elsewhere := plane.Namespace(t)
	other := clusterOf(t, elsewhere)
	key := types.NamespacedName{Namespace: elsewhere, Name: "settings"}
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		foreign := config.WithCluster(other)
		return &widgetRoot{
			Config: config,
			Reconciler: &widgetWithConfig{
				Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return foreign, nil },
				Reconciler: &widgetSync{
					Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
						bldr.WatchesRawSource(source.Kind(other.GetCache(), client.Object(&corev1.ConfigMap{}), reconcilers.EnqueueTracked(ctx)))
						return mgr.Add(other)
					},
					Sync: func(ctx context.Context, w *resources.Widget) error {
						settings := &corev1.ConfigMap{}
						err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, settings)
						w.Status.AddField("color", settings.Data["color"])
						return client.IgnoreNotFound(err)
					},
				},
			},
		}
	})
	c := live(t)
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	reads := func(color string) {
		t.Helper()
		eventually(t, "the settings are not followed", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
			if read, ok := w.Status.Fields["color"]; !ok || read != color {
				return fmt.Errorf("the color is %q, expected %q", read, color)
			}
			return nil
		})
	}
	reads("")
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string]string{"color": "red"},
	}
	if err := c.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads("red")
	settings.Data["color"] = "blue"
	if err := c.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads("blue")
}
