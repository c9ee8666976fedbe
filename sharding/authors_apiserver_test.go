package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// isGivenBack returns an error unless a Widget has no label of the ring.
func isGivenBack(ctx context.Context, c client.Client, w *resources.Widget) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		return err
	}
	if len(w.Labels) > 0 {
		return fmt.Errorf("the Widget has the labels %v", w.Labels)
	}
	return nil
}

// Neither a predicate nor a hook of the author keeps a resource from being given back.
func TestAResourceIsGivenBackWhateverTheAuthorDrops(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*rootOfWidgets, *atomic.Bool){
		"a predicate": func(r *rootOfWidgets, drops *atomic.Bool) {
			r.Setup = func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.WithEventFilter(predicate.NewPredicateFuncs(func(client.Object) bool { return !drops.Load() }))
				return nil
			}
		},
		"SkipRequest": func(r *rootOfWidgets, drops *atomic.Bool) {
			r.SkipRequest = func(context.Context, reconcilers.Request) bool { return drops.Load() }
		},
		"SkipResource": func(r *rootOfWidgets, drops *atomic.Bool) {
			r.SkipResource = func(context.Context, *resources.Widget) bool { return drops.Load() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			var drops, reconciled atomic.Bool
			// A child that is hidden would have the resource reconciled again after a while.
			childless := &reconcilers.SyncReconciler[*resources.Widget]{Sync: func(context.Context, *resources.Widget) error {
				reconciled.Store(true)
				return nil
			}}
			startTree(t, namespace, "first", func(config reconcilers.Config) *rootOfWidgets {
				root := tree(childless)(config)
				drop(root, &drops)
				return root
			})
			w := createWidget(t, c, namespace, "first")
			controlplanetest.Eventually(t, "not reconciled", func(context.Context) error {
				if !reconciled.Load() {
					return errors.New("there was no request")
				}
				return nil
			})
			drops.Store(true)
			label(t, c, w, fmt.Sprintf(`{%q:"true"}`, drainLabel))
			controlplanetest.Eventually(t, "the Widget is not given back", func(ctx context.Context) error {
				return isGivenBack(ctx, c, w)
			})
		})
	}
}

// losing is a transport that loses the answer to the first creation of a ConfigMap.
type losing struct {
	inner http.RoundTripper
	lost  *atomic.Bool
}

func (l losing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.inner.RoundTrip(req)
	creates := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/configmaps")
	if err != nil || !creates || l.lost.Swap(true) {
		return resp, err
	}
	_ = resp.Body.Close() // it is not read
	return nil, errors.New("the connection is lost")
}

// A write without an answer may still arrive, so the resource is not given back meanwhile.
func TestAResourceIsNotGivenBackWhileAWriteMayArrive(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	var lost atomic.Bool
	var root *rootOfWidgets
	startTree(t, namespace, "first", func(config reconcilers.Config) *rootOfWidgets {
		root = tree(made("first"))(config)
		return root
	}, func(config *rest.Config) {
		config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return losing{inner: inner, lost: &lost} })
	})
	w := createWidget(t, c, namespace, "first")
	controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
		return isBy(ctx, c, w, "first", "")
	})
	label(t, c, w, fmt.Sprintf(`{%q:"true"}`, drainLabel))
	if !lost.Load() {
		t.Fatal("no answer was lost, want that one was")
	}
	controlplanetest.Eventually(t, "the process does not see that it is asked back", func(ctx context.Context) error {
		seen := &resources.Widget{}
		if err := root.Config.Get(ctx, client.ObjectKeyFromObject(w), seen); err != nil {
			return err
		}
		if _, drains := seen.Labels[drainLabel]; !drains {
			return fmt.Errorf("it has the labels %v", seen.Labels)
		}
		_, err := root.Reconcile(ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		return err
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if w.Labels[shardLabel] != "first" {
		t.Errorf("the Widget has the labels %v, want that it is still the shard's", w.Labels)
	}
}

// holding returns a shard that holds its Lease, without a process.
func holding(t *testing.T) *shard.Shard {
	t.Helper()
	s, err := shard.New(ring, "first", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	shard.Hold(s)
	return s
}

// What was read for a resource before it left is not believed when it comes back, also if no watch shows that it left.
func TestAResourceThatComesBackIsNew(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	s := holding(t)
	root := tree(made("first"))(reconcilers.Config{Client: c, APIReader: c}.WithShard(s))
	kind := schema.GroupKind{Group: resources.GroupVersion.Group, Kind: "Widget"}
	for name, labels := range map[string]map[string]string{
		"given-back": {shardLabel: "first", drainLabel: "true"},
		"another's":  {shardLabel: "second"},
	} {
		w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "w-", Labels: labels}}
		if err := c.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		of := shard.Resource{GroupKind: kind, NamespacedName: client.ObjectKeyFromObject(w)}
		shard.Arrive(s, of)
		before := time.Now()
		if _, err := root.Reconcile(t.Context(), requestOf(w)); err != nil {
			t.Fatal(err)
		}
		if at := shard.ArrivedAt(s, of); !at.After(before) {
			t.Errorf("%s: what was read at %v is believed, want nothing from before the request at %v", name, at, before)
		}
	}
}

// many is a client that cannot be the key of a map.
type many struct {
	client.Client
	_ []string
}

// The children that the cache does not show can be told only if the client of the config is always the same.
func TestAClientThatCannotBeComparedIsRefused(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	s := holding(t)
	shard.Filter(s, corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
	config := reconcilers.Config{Client: c, APIReader: c}.WithShard(s)
	config.Client = many{Client: config.Client}
	w := createWidget(t, c, namespace, "first")
	_, err := tree(made("first"))(config).Reconcile(t.Context(), requestOf(w))
	if err == nil || !strings.Contains(err.Error(), "compared") {
		t.Errorf("the request gives the error %v, want one that says that the client cannot be compared", err)
	}
}

// A create of the process that had the resource before may arrive when another has looked for children already. The
// other one looks again before it creates one: each of its nodes, also if they run although one has found something.
func TestAChildThatArrivesLateIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{"one node": {"late"}, "a second node": {"other", "late"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			var tree reconcilers.Always[*resources.Widget]
			for _, name := range nodes {
				tree = append(tree, generatedOnDemand(name))
			}
			start(t, namespace, "second", tree)
			w := createWidget(t, c, namespace, "second")
			controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || w.Status.Fields["late"] == "false" {
					return err
				}
				return fmt.Errorf("the status is %+v", w.Status)
			})
			late := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, GenerateName: "late-", Labels: map[string]string{shardLabel: "first"},
					OwnerReferences: []metav1.OwnerReference{
						*metav1.NewControllerRef(w, resources.GroupVersion.WithKind("Widget")),
					},
				},
			}
			if err := c.Create(t.Context(), late); err != nil {
				t.Fatal(err)
			}
			setImage(t, c, w, "1")
			children := &corev1.ConfigMapList{}
			controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
				if err := c.List(ctx, children, client.InNamespace(namespace)); err != nil {
					return err
				}
				isOld := func(child corev1.ConfigMap) bool { return child.Data["image"] != "1" }
				if len(children.Items) < len(nodes) || slices.ContainsFunc(children.Items, isOld) {
					return fmt.Errorf("there are %v", names(children))
				}
				return nil
			})
			if len(children.Items) != len(nodes) || !slices.ContainsFunc(children.Items, isUID(late.UID)) {
				t.Errorf("the Widget has the children %v, want one for each node, and %s, which came late, among them",
					names(children), late.Name)
			}
		})
	}
}

// generatedOnDemand is a node whose child has a generated name, and is desired if a Widget has an image.
func generatedOnDemand(name string) node {
	of := generated("second")
	of.Name = name
	desired := of.DesiredChild
	of.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		if w.Spec.Fields["image"] == "" {
			return nil, nil
		}
		child, err := desired(ctx, w)
		child.GenerateName = name + "-"
		return child, err
	}
	of.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool {
		return strings.HasPrefix(child.Name+child.GenerateName, name)
	}
	of.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, child *corev1.ConfigMap, _ error) {
		w.Status.AddField(name, fmt.Sprint(child != nil))
	}
	return of
}

func isUID(uid types.UID) func(corev1.ConfigMap) bool {
	return func(obj corev1.ConfigMap) bool { return obj.UID == uid }
}

func names(list *corev1.ConfigMapList) (all []string) {
	for _, obj := range list.Items {
		all = append(all, obj.Name)
	}
	return all
}

// What a node tracks without saying so may be another shard's, of which no event arrives. So it is refused.
func TestTrackingWhatTheCacheLacksIsRefused(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	told := make(chan error, 100)
	tracking := &reconcilers.SyncReconciler[*resources.Widget]{
		Name: "Tracking",
		Sync: func(ctx context.Context, w *resources.Widget) error {
			key := client.ObjectKey{Namespace: w.Namespace, Name: "other"}
			select {
			case told <- reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{}):
			default:
			}
			return nil
		},
	}
	start(t, namespace, "first", reconcilers.Sequence[*resources.Widget]{made("first"), tracking})
	createWidget(t, c, namespace, "first")
	var err error
	controlplanetest.Eventually(t, "not reconciled", func(context.Context) error {
		select {
		case err = <-told:
			return nil
		default:
			return errors.New("the node has told nothing")
		}
	})
	if err == nil || !strings.Contains(err.Error(), "Uses") {
		t.Errorf("to track a type of which the cache has the shard's own objects gives the error %v, "+
			"want one that names Uses", err)
	}
}

// Of two processes of one name, the second waits until the first has gone. So does one that is the only shard of its
// ring, and is replaced.
func TestASecondProcessOfTheNameWaits(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	first := start(t, namespace, "one", made("first"))
	w := createWidget(t, c, namespace, "one")
	controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
		return isBy(ctx, c, w, "first", "")
	})
	var requests atomic.Int64
	startTree(t, namespace, "one", func(config reconcilers.Config) *rootOfWidgets {
		root := tree(made("second"))(config)
		root.BeforeReconcile = func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
			requests.Add(1)
			return ctx, reconcilers.Result{}, nil
		}
		return root
	})
	// It is renewed for longer than it lasts.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	process := lease.Annotations["espalier.dev/process"]
	lasts := lease.Spec.RenewTime.Add(leaseDuration)
	controlplanetest.Eventually(t, "the Lease is not renewed", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		if err != nil || lease.Spec.RenewTime.After(lasts) {
			return err
		}
		return fmt.Errorf("it was renewed at %v, want it renewed after %v", lease.Spec.RenewTime, lasts)
	})
	if now := lease.Annotations["espalier.dev/process"]; now != process || ptr.Deref(lease.Spec.HolderIdentity, "") != "one" {
		t.Errorf("the Lease is of the process %s now, want that of the first, %s", now, process)
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the second process has %d requests while the first runs, want none", n)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the second process does not go on", func(ctx context.Context) error {
		return isBy(ctx, c, w, "second", "")
	})
}
