package espalier_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/fake"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const registryFinalizer = "test.espalier.dev/registry"

var colorCell = stash.New[string]("test.espalier.dev/color-of-item")

// eachRegion returns a loop over regions, each of which has a loop over its databases.
func eachRegion(nodes ...node) node {
	type region string
	of := func(key string) region {
		if key < "c" {
			return "east"
		}
		return "west"
	}
	regions := func(_ context.Context, w *resources.Widget) (items []region, _ error) {
		for _, key := range slices.Sorted(maps.Keys(w.Spec.Fields)) {
			if r := of(key); !slices.Contains(items, r) {
				items = append(items, r)
			}
		}
		return items, nil
	}
	inRegion := func(ctx context.Context, w *resources.Widget) ([]database, error) {
		items, err := databases(ctx, w)
		return slices.DeleteFunc(items, func(d database) bool { return of(d.key) != espalier.ItemOf[region](ctx) }), err
	}
	return espalier.Each("Regions", regions, func(r region) string { return string(r) },
		espalier.Each("Databases", inRegion, func(d database) string { return d.key }, nodes...))
}

// world is a cluster, and a registry outside of it.
type world struct {
	client.Client
	registry map[string]bool
	root     *reconcilers.ResourceReconciler[*resources.Widget]
	// fails says whether the next write, or call of the registry, fails.
	fails func() bool
}

// newWorld returns a world in which an operator has the tree that make returns. The nodes of the world take the key of
// their item from key.
func newWorld(t *testing.T, key func(ctx context.Context) (string, string), around func(nodes ...node) node) *world {
	w := &world{registry: map[string]bool{}, fails: func() bool { return false }}
	write := func(do func() error) error {
		if w.fails() {
			return errBoom
		}
		return do()
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			opts ...client.SubResourceUpdateOption,
		) error {
			return write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
	}).Build()
	config := reconcilers.Config{Client: w.Client, APIReader: w.Client, Recorder: &record.FakeRecorder{}}
	w.root = espalier.For(config, around(w.nodes(key)...))
	return w
}

// nodes are the nodes of one item.
func (w *world) nodes(key func(ctx context.Context) (key, color string)) []node {
	named := func(ctx context.Context, kind string) *corev1.ConfigMap {
		k, color := key(ctx)
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: k + "-" + kind}, Data: map[string]string{"color": color},
		}
	}
	config := espalier.Owns("Config", func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
		return named(ctx, "config"), nil
	}).Labeled().Reports("ChildReady")
	return []node{
		espalier.Runs("Registry", func(ctx context.Context, _ *resources.Widget) error {
			if w.fails() {
				return errBoom
			}
			k, _ := key(ctx)
			w.registry[k] = true
			return nil
		}).Finalizes(registryFinalizer, func(ctx context.Context, _ *resources.Widget) error {
			if w.fails() {
				return errBoom
			}
			k, _ := key(ctx)
			delete(w.registry, k)
			return nil
		}).Reports("Registered"),
		espalier.Yield(config, colorCell, func(live *corev1.ConfigMap) (string, error) { return live.Data["color"], nil }),
		espalier.Owns("Copy", func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
			copied := named(ctx, "copy")
			copied.Data["copied"] = colorCell.RetrieveOrEmpty(ctx)
			return copied, nil
		}).Labeled().Needs(colorCell).Reports("Copied"),
		espalier.OwnsEach("Parts", func(ctx context.Context, _ *resources.Widget) (parts []*corev1.ConfigMap, _ error) {
			_, color := key(ctx)
			for i := range len(color) {
				parts = append(parts, named(ctx, fmt.Sprint("part-", i)))
			}
			return parts, nil
		}).Labeled().Reports("PartsReady"),
		&feature.Feature[*resources.Widget]{
			Name: "Extra",
			Gate: func(ctx context.Context, _ *resources.Widget) gate.Gate {
				_, color := key(ctx)
				return gate.When(color != "blue")
			},
			Reconciler: espalier.Owns("Extra", func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
				return named(ctx, "extra"), nil
			}).Labeled().Reports("ExtraKept"),
		},
	}
}

// rest reconciles until nothing changes any more.
func (w *world) rest(t *testing.T) {
	t.Helper()
	for range 100 {
		before := w.versions(t)
		err := w.once(t)
		if after := w.versions(t); err == nil && maps.Equal(before, after) {
			return
		}
	}
	t.Fatal("the operator does not come to rest within 100 requests, want it at rest")
}

func (w *world) versions(t *testing.T) map[string]string {
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &resources.WidgetList{}} {
		if err := w.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch list := list.(type) {
		case *corev1.ConfigMapList:
			for _, object := range list.Items {
				versions[object.Name] = object.ResourceVersion
			}
		case *resources.WidgetList:
			for _, object := range list.Items {
				versions["the widget"] = object.ResourceVersion
			}
		}
	}
	return versions
}

// objects returns what is in the cluster and in the registry, without what only items have.
func (w *world) objects(t *testing.T) map[string]map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := w.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]string{}
	for _, object := range list.Items {
		content := maps.Clone(object.Data)
		for key, value := range object.Labels {
			if key != reconcilers.ItemLabel {
				content[key] = value
			}
		}
		objects[object.Name] = content
	}
	for key := range w.registry {
		objects["registered "+key] = nil
	}
	return objects
}

// ask changes the spec.
func (w *world) ask(t *testing.T, colors map[string]string) {
	t.Helper()
	var widget resources.Widget
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "gadget"}, &widget); err != nil {
		t.Fatal(err)
	}
	widget.Spec.Fields = colors
	if err := w.Update(t.Context(), &widget); err != nil {
		t.Fatal(err)
	}
}

// A tree of n items does to the cluster what n hand-written trees do.
func TestItemsAreAsTreesOfTheirOwn(t *testing.T) {
	inLoop := func(ctx context.Context) (string, string) {
		return reconcilers.ItemKey(ctx), espalier.ItemOf[database](ctx).asked
	}
	alone := map[string]map[string]map[string]string{}
	tree := func(key, color string) map[string]map[string]string {
		if known, ok := alone[key+"="+color]; ok {
			return known
		}
		w := newWorld(t, func(context.Context) (string, string) { return key, color },
			func(nodes ...node) node { return espalier.Steps(nodes...) })
		w.rest(t)
		alone[key+"="+color] = w.objects(t)
		return alone[key+"="+color]
	}
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		around := eachDatabase
		if seed%3 == 2 {
			around = eachRegion
		}
		w := newWorld(t, inLoop, around)
		for step := range 5 {
			colors, want := map[string]string{}, map[string]map[string]string{}
			for _, key := range []string{"a", "b", "c", "d"} {
				if random.IntN(2) == 0 {
					continue
				}
				colors[key] = []string{"red", "blue", "black"}[random.IntN(3)]
				maps.Copy(want, tree(key, colors[key]))
			}
			w.ask(t, colors)
			if faults := random.IntN(8); seed%2 == 1 {
				w.fails = func() bool { faults--; return faults >= 0 && random.IntN(2) == 0 }
			}
			w.rest(t)
			if diff := cmp.Diff(want, w.objects(t)); diff != "" {
				t.Fatalf("seed %d, step %d, asked for %v: the loop differs from trees of their own (-want, +got):\n%s",
					seed, step, colors, diff)
			}
			w.check(t, slices.Sorted(maps.Keys(colors)))
		}
		if err := w.Delete(t.Context(), widget.Object()); err != nil {
			t.Fatal(err)
		}
		if faults := 4; seed%2 == 1 {
			w.fails = func() bool { faults--; return faults >= 0 && random.IntN(2) == 0 }
		}
		w.rest(t)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(widget.Object()), &resources.Widget{}); err == nil {
			t.Errorf("seed %d: the deleted resource is still there, want it gone", seed)
		}
		if len(w.registry) > 0 {
			t.Errorf("seed %d: %v are registered after the resource was deleted, want none", seed, w.registry)
		}
	}
}

func TestItemsHaveToBeRecorded(t *testing.T) {
	type loop = reconcilers.ForEach[*corev1.Node, database]
	key := func(d database) string { return d.key }
	items := func(context.Context, *corev1.Node) ([]database, error) { return nil, nil }
	nothing := espalier.Runs("Nothing", func(context.Context, *corev1.Node) error { return nil })
	for want, n := range map[string]reconcilers.SubReconciler[*corev1.Node]{
		`ForEach "ForEach" must have a Name, since Key is set`: &loop{Key: key, Items: items, Reconciler: nothing},
		`ForEach "Databases" finds no apis.ItemsStatus in the status of *v1.Node: embed apis.ItemsStatus in the type of ` +
			`its field Status, since Key is set`: &loop{Name: "Databases", Key: key, Items: items, Reconciler: nothing},
	} {
		ctx := reconcilers.StashResourceType(t.Context(), &corev1.Node{})
		if err := n.SetupWithManager(ctx, nil, nil); err == nil || err.Error() != want {
			t.Errorf("the set-up returned %v, want %s", err, want)
		}
		if _, err := n.Reconcile(ctx, &corev1.Node{}); err == nil || err.Error() != want {
			t.Errorf("a request returned %v, want %s", err, want)
		}
	}
}

// check compares what the status says with the keys of the items, which are all ready.
func (w *world) check(t *testing.T, keys []string) {
	t.Helper()
	var widget resources.Widget
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "gadget"}, &widget); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, record := range widget.Status.ForEach {
		if strings.HasPrefix(record.Name, "Databases") {
			recorded = append(recorded, record.Keys...)
		}
		if record.NotReadyCount > 0 {
			t.Errorf("the items %v are not ready, want all ready", record.NotReady)
		}
	}
	var features []string
	for _, record := range widget.Status.Features {
		features = append(features, record.Name[len(record.Name)-2:len(record.Name)-1])
	}
	if !slices.Equal(features, keys) {
		t.Errorf("the features of the items %v are recorded, want those of %v", features, keys)
	}
	if !slices.Equal(recorded, keys) {
		t.Errorf("the recorded keys are %v, want %v", recorded, keys)
	}
	if ready := reconcilers.GetCondition(&widget, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("the condition Ready is %v, want it True", ready)
	}
	if got := len(widget.Finalizers) > 0; got != (len(keys) > 0) {
		t.Errorf("the finalizers are %v with %d items, want one only if there are items", widget.Finalizers, len(keys))
	}
}
