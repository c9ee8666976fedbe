package reconcilers_test

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lagging is a client whose reads show the state of when it last caught up.
type lagging struct {
	client.Client
	calls *trace
	seen  map[reflect.Type]map[types.NamespacedName]client.Object
}

func (l *lagging) catchUp(t *testing.T) {
	t.Helper()
	l.seen = map[reflect.Type]map[types.NamespacedName]client.Object{}
	for _, list := range []client.ObjectList{&resources.WidgetList{}, &corev1.ConfigMapList{}} {
		if err := l.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			kind := reflect.TypeOf(obj)
			if l.seen[kind] == nil {
				l.seen[kind] = map[types.NamespacedName]client.Object{}
			}
			l.seen[kind][client.ObjectKeyFromObject(obj)] = obj.DeepCopyObject().(client.Object)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (l *lagging) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	seen, ok := l.seen[reflect.TypeOf(obj)][key]
	if !ok {
		return apierrs.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(seen.DeepCopyObject()).Elem())
	return nil
}

func (l *lagging) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var found []runtime.Object
	for _, obj := range l.seen[reflect.TypeFor[*corev1.ConfigMap]()] {
		if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(list, found)
}

// staleCluster is a root over a lagging client, and the cluster behind it.
type staleCluster struct {
	*testing.T
	*lagging
	root *widgetRoot
	now  time.Time
}

func newStaleCluster(t *testing.T, node func(*trace) widgetNode) *staleCluster {
	calls := &trace{}
	expect := expectWidget(steadyWidget)
	expect.WithReactors = []rtesting.ReactionFunc{calls.observe, assignUID}
	config := expect.Config()
	cluster := &staleCluster{T: t, lagging: &lagging{Client: config.Client, calls: calls}, now: requestTime}
	config.Client, config.APIReader = cluster.lagging, cluster.lagging.Client
	cluster.root = &widgetRoot{Reconciler: node(&trace{}), Config: config}
	cluster.catchUp(t)
	return cluster
}

// reconcile reconciles and checks the calls that it makes.
func (w *staleCluster) reconcile(step string, expected ...string) {
	w.Helper()
	w.calls.calls = nil
	if _, err := w.root.Reconcile(rtime.StashNow(w.Context(), w.now), widgetRequest); err != nil {
		w.Errorf("%s: returned %v, want no error", step, err)
	}
	if !slices.Equal(w.calls.calls, expected) {
		w.Errorf("%s: called %v, expected %v", step, w.calls.calls, expected)
	}
}

// children are those that there really are.
func (w *staleCluster) children() []corev1.ConfigMap {
	w.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.lagging.Client.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

func generatedName(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	child.Name, child.GenerateName = "", "gadget-"
	return child, nil
}

// A cache that lags behind our own write must not make us write again.
func TestStaleCacheCausesNoSecondWrite(t *testing.T) {
	for name, change := range map[string]func(*configMapNode){
		"name": func(*configMapNode) {},
		"generated name, without an owner": func(node *configMapNode) {
			withoutOwner(node)
			desires(generatedName)(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newStaleCluster(t, changedChild(change))
			cluster.reconcile("first", "create ConfigMap", "update Widget/status")
			for range 3 {
				cluster.reconcile("the cache lags")
			}
			cluster.catchUp(t)
			cluster.reconcile("the cache caught up")
			if n := len(cluster.children()); n != 1 {
				t.Errorf("there are %d children, want 1", n)
			}
		})
	}
}

func TestStaleCacheCausesNoSecondUpdate(t *testing.T) {
	color := "blue"
	cluster := newStaleCluster(t, changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Data["color"] = color
		return child, nil
	})))
	cluster.reconcile("first", "create ConfigMap", "update Widget/status")
	cluster.catchUp(t)
	color = "red"
	cluster.reconcile("desired otherwise", "update ConfigMap")
	cluster.reconcile("the cache lags")
	color = "green"
	cluster.reconcile("desired otherwise again, while the cache lags", "update ConfigMap")
	cluster.reconcile("the cache lags again")
	cluster.catchUp(t)
	cluster.reconcile("the cache caught up")
	if children := cluster.children(); len(children) != 1 || children[0].Data["color"] != "green" {
		t.Errorf("there are %v, want one green child", children)
	}
}

func TestStaleCacheCausesNoSecondDelete(t *testing.T) {
	desired := true
	cluster := newStaleCluster(t, changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if !desired {
			return nil, nil
		}
		return child, nil
	})))
	cluster.reconcile("first", "create ConfigMap", "update Widget/status")
	cluster.catchUp(t)
	desired = false
	cluster.reconcile("not desired", "delete ConfigMap", "update Widget/status")
	cluster.catchUp(t)
	cluster.reconcile("gone")
	desired = true
	cluster.reconcile("desired again", "create ConfigMap", "update Widget/status")
	if n := len(cluster.children()); n != 1 {
		t.Errorf("there are %d children, want 1", n)
	}
}

// What other clients do is believed as soon as it can be known.
func TestStaleCacheIsNotDistrustedForEver(t *testing.T) {
	t.Run("deleted after the cache saw it", func(t *testing.T) {
		cluster := newStaleCluster(t, changedChild())
		cluster.reconcile("first", "create ConfigMap", "update Widget/status")
		cluster.catchUp(t)
		child := cluster.children()[0]
		if err := cluster.lagging.Client.Delete(t.Context(), &child); err != nil {
			t.Fatal(err)
		}
		cluster.catchUp(t)
		cluster.reconcile("deleted", "create ConfigMap")
	})
	t.Run("deleted before the cache saw it", func(t *testing.T) {
		cluster := newStaleCluster(t, changedChild())
		cluster.reconcile("first", "create ConfigMap", "update Widget/status")
		child := cluster.children()[0]
		if err := cluster.lagging.Client.Delete(t.Context(), &child); err != nil {
			t.Fatal(err)
		}
		cluster.reconcile("deleted", "create ConfigMap")
		cluster.catchUp(t)
		cluster.reconcile("the cache caught up")
	})
	t.Run("changed by another client", func(t *testing.T) {
		cluster := newStaleCluster(t, changedChild())
		cluster.reconcile("first", "create ConfigMap", "update Widget/status")
		child := cluster.children()[0]
		child.Data = nil
		if err := cluster.lagging.Client.Update(t.Context(), &child); err != nil {
			t.Fatal(err)
		}
		cluster.catchUp(t)
		cluster.reconcile("changed", "update ConfigMap")
	})
}

// A status that was written is not written again on the word of a cache that lags.
func TestStaleCacheCausesNoSecondStatusWrite(t *testing.T) {
	count := 0
	cluster := newStaleCluster(t, func(*trace) widgetNode {
		return &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
			if w.Status.Fields["made"] == "" {
				count++
				w.Status.AddField("made", "thing-"+strconv.Itoa(count))
			}
			return nil
		}}
	})
	cluster.reconcile("first", "update Widget/status")
	cluster.reconcile("the cache lags")
	cluster.catchUp(t)
	cluster.reconcile("the cache caught up")
	if count != 1 {
		t.Errorf("%d things were made, want 1", count)
	}
}

// Finalizers are written by patch, and are known then.
func TestStaleCacheCausesNoSecondFinalizer(t *testing.T) {
	cluster := newStaleCluster(t, func(calls *trace) widgetNode {
		return &widgetFinalizer{Finalizer: ours, Reconciler: calls.step("nested", reconcilers.Result{}, nil)}
	})
	cluster.reconcile("first", "patch Widget")
	cluster.reconcile("the cache lags")
	cluster.catchUp(t)
	cluster.reconcile("the cache caught up")
}
