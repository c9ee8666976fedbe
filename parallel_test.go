package espalier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/branching"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracing"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vocabulary has a node of each sort, none of which needs another one. What they do differs by the name.
func vocabulary(name string) []node {
	type syncing = reconcilers.SyncReconciler[*resources.Widget]
	configMap := func(of client.Object, suffix string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: of.GetName() + "-" + strings.ToLower(name) + "-" + suffix,
			},
			Data: map[string]string{"of": name},
		}
	}
	desired := func(suffix string) func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
		return func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return configMap(w, suffix), nil
		}
	}
	value := stash.New[string](stash.Key("test.espalier.dev/" + name))
	note := func(suffix string) node {
		return &syncing{Name: name + suffix, Sync: func(ctx context.Context, w *resources.Widget) error {
			w.Status.AddField(name+suffix, "ran")
			stash.StoreValue(ctx, stash.Key(name+suffix), suffix)
			reconcilers.RecordEvent(ctx, w, corev1.EventTypeNormal, "Ran", "%s", suffix)
			return nil
		}}
	}
	noop := func(context.Context, *resources.Widget) error { return nil }
	finalizer := func(suffix string) string { return "test.espalier.dev/" + strings.ToLower(name) + "-" + suffix }
	return []node{
		espalier.Owns(name+"Owned", desired("owned")).Labeled().Reports(name + "Owned"),
		espalier.Owns(name+"Guarded", desired("guarded")).Labeled().Reports(name + "Guarded").
			Guard(func(context.Context, *resources.Widget) (string, error) { return "for nothing", nil }),
		espalier.OwnsEach(name+"Set", func(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
			return []*corev1.ConfigMap{configMap(w, "set-a"), configMap(w, "set-b")}, nil
		}).Labeled().Reports(name + "Set"),
		espalier.Owns(name+"Elsewhere", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			elsewhere := configMap(w, "elsewhere")
			elsewhere.Namespace = "kube-system"
			return elsewhere, nil
		}).Labeled().AnyNamespace(),
		espalier.Reads(name+"Reads", stash.New[*corev1.ConfigMap](stash.Key(name)), settingsKey).
			Reports(name + "Found").Optional(),
		espalier.Runs(name+"Runs", noop).Reports(name+"Ran").Finalizes(finalizer("runs"), noop),
		espalier.Each(name+"Each", func(context.Context, *resources.Widget) ([]string, error) { return []string{"a", "b"}, nil },
			func(item string) string { return item },
			espalier.Owns(name+"OfItem", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return configMap(w, "item-"+espalier.ItemOf[string](ctx)), nil
			}).Labeled().Reports(name+"OfItem"),
			espalier.AtOnce(
				espalier.Runs(name+"RunsOfItem", noop).Finalizes(finalizer("item"), noop),
				espalier.Runs(name+"RunsMore", noop).Finalizes(finalizer("item-more"), noop),
			),
		),
		&feature.Feature[*resources.Widget]{
			Name: name + "Feature", GracePeriod: time.Hour,
			Reconciler: espalier.Owns(name+"OfFeature", desired("feature")).Labeled().Reports(name + "OfFeature"),
		},
		&feature.Feature[*resources.Widget]{
			Name: name + "Off", Gate: func(context.Context, *resources.Widget) gate.Gate { return gate.When(false) },
			Reconciler: espalier.AtOnce(
				espalier.Owns(name+"OffA", desired("off-a")).Labeled(), espalier.Owns(name+"OffB", desired("off-b")).Labeled(),
			),
		},
		&feature.Feature[*resources.Widget]{
			Name: name + "Parts", GracePeriod: time.Hour,
			Reconciler: espalier.AtOnce(
				espalier.Owns(name+"Part", desired("part")).Labeled().Reports(name+"Part"),
				espalier.Owns(name+"Server", func(_ context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
					d := deployment.Object()
					d.ObjectMeta = configMap(w, "server").ObjectMeta
					return d, nil
				}).Labeled(),
				&feature.Feature[*resources.Widget]{
					Name: name + "Inner", Reconciler: espalier.AtOnce(note("InnerA"), note("InnerB")),
				},
			),
		},
		espalier.Each(name+"Components", func(context.Context, *resources.Widget) ([]string, error) {
			return []string{"a", "b"}, nil
		}, func(item string) string { return item }, &component.ComponentReconciler[*resources.Widget]{
			Name: name + "Component", Prefix: strings.ToLower(name) + ".test.espalier.dev", FenceMargin: -1,
			Condition: name + "Deployed",
			Generator: generator.GeneratorFunc(func(
				_ context.Context, namespace, of string, _ generator.Unstructurable,
			) ([]client.Object, error) {
				var objects []client.Object
				for i := range 5 {
					object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
					object.Namespace, object.Name = namespace, fmt.Sprintf("%s-%s-%d", of, strings.ToLower(name), i)
					objects = append(objects, object)
				}
				return objects, nil
			}),
		}),
		espalier.Steps(
			espalier.Yield(espalier.Owns(name+"First", desired("first")).Labeled(), value,
				func(c *corev1.ConfigMap) (string, error) { return c.Name, nil }),
			espalier.Owns(name+"Second", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return configMap(w, "second-"+value.RetrieveOrDie(ctx)), nil
			}).Labeled().Needs(value).Reports(name+"Second"),
		),
		espalier.When(name+"When", func(context.Context, *resources.Widget) bool { return true }, note("When")),
		&reconcilers.ForEach[*resources.Widget, string]{
			Name:  name + "ForEach",
			Items: func(context.Context, *resources.Widget) ([]string, error) { return []string{"x", "y"}, nil },
			Reconciler: &syncing{Sync: func(ctx context.Context, w *resources.Widget) error {
				w.Status.AddField(name+reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item, "ran")
				return nil
			}},
		},
		&reconcilers.While[*resources.Widget]{
			Condition:  func(ctx context.Context, _ *resources.Widget) bool { return reconcilers.RetrieveIteration(ctx) < 3 },
			Reconciler: note("While"),
		},
		&reconcilers.TryCatch[*resources.Widget]{
			Try: &syncing{Name: name + "Fails", Sync: func(context.Context, *resources.Widget) error { return errBoom }},
			Catch: func(
				context.Context, *resources.Widget, reconcilers.Result, error,
			) (reconcilers.Result, error) {
				return reconcilers.Result{}, nil
			},
			Finally: note("Finally"),
		},
		&reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{Reconciler: note("Suppressed")},
		&reconcilers.Advice[*resources.Widget]{Reconciler: note("Advice")},
		&reconcilers.WithConfig[*resources.Widget]{
			Config:     func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) { return config, nil },
			Reconciler: note("Config"),
		},
		&reconcilers.WithFinalizer[*resources.Widget]{Finalizer: finalizer("literal"), Reconciler: note("Finalizer")},
		&reconcilers.CastResource[*resources.Widget, *corev1.Pod]{Reconciler: &reconcilers.Parallel[*corev1.Pod]{
			Nodes: []reconcilers.SubReconciler[*corev1.Pod]{
				espalier.Owns(name+"OfCast", func(_ context.Context, p *corev1.Pod) (*corev1.ConfigMap, error) {
					return configMap(p, "cast"), nil
				}).Labeled(),
				&reconcilers.WithFinalizer[*corev1.Pod]{
					Finalizer: finalizer("cast"), Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{
						Sync: func(_ context.Context, p *corev1.Pod) error {
							p.Labels = map[string]string{"ran-" + name: "true"}
							return nil
						},
					},
				},
			},
		}},
		reconcilers.ReverseOnDeletion[*resources.Widget]{note("Reverse"), note("ReverseMore")},
		reconcilers.Sequence[*resources.Widget]{note("Sequence")},
		reconcilers.Always[*resources.Widget]{note("Always")},
		&reconcilers.OverrideSetup[*resources.Widget]{Reconciler: note("Override")},
	}
}

// The whole vocabulary runs in branches, for several resources, while observers listen. What is left is the same as if
// it had run in order, at each step of the life of a resource.
func TestAtOnceWithTheWholeVocabulary(t *testing.T) {
	const requests = 8
	story := func(ctx context.Context, t *testing.T) []string {
		builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resources.Widget{})
		keys := []types.NamespacedName{}
		for i := range 3 {
			w := widget.Object()
			w.Name, w.UID = fmt.Sprint("gadget-", i), types.UID(fmt.Sprint("uid-", i))
			builder.WithObjects(w)
			keys = append(keys, client.ObjectKeyFromObject(w))
		}
		c := builder.Build()
		counts, err := metrics.New(metrics.Options{Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		config := reconcilers.Config{
			Client: c, APIReader: c, Recorder: record.NewFakeRecorder(10000), Tracker: tracker.New(scheme, time.Hour),
		}.WithObserver(counts, page.New(page.Options{}), tracing.New(nil))
		root := espalier.For(config, espalier.AtOnce(slices.Concat(vocabulary("A"), vocabulary("B"))...))
		if err := root.Validate(ctx); err != nil {
			t.Fatalf("the tree is not valid: %v", err)
		}
		var states []string
		now := time.Unix(1000, 0)
		for _, step := range []string{"made", "deleted"} {
			for range requests {
				errs := make([]error, len(keys))
				var workers sync.WaitGroup
				now = now.Add(10 * time.Second)
				ctx := rtime.StashNow(ctx, now)
				for i, key := range keys {
					workers.Go(func() { _, errs[i] = root.Reconcile(ctx, reconcilers.Request{NamespacedName: key}) })
				}
				workers.Wait()
				for i, key := range keys {
					states = append(states, fmt.Sprintf("%s: %v\n%s", step, errs[i], stateOf(t, c, key)))
				}
			}
			for _, key := range keys {
				w := &resources.Widget{}
				if err := c.Get(ctx, key, w); err == nil {
					if err := c.Delete(ctx, w); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		return states
	}
	want := story(branching.InOrder(t.Context()), t)
	for range 3 {
		got := story(t.Context(), t)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("request %d leaves\n%s\nwant what it leaves in order\n%s", i, got[i], want[i])
			}
		}
	}
	if end := "deleted: <nil>\ngone"; want[len(want)-1] != end {
		t.Errorf("in the end there is %s, want %s", want[len(want)-1], end)
	}
}

// A feature whose node is an AtOnce waits for the objects of all branches. Which one is faster does not matter.
func TestAtOnceInAFeature(t *testing.T) {
	keeps := func(suffix string) node {
		desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings-" + suffix}}
		return espalier.Owns("Settings"+suffix, func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
			return desired.DeepCopy(), nil
		}).Labeled()
	}
	serves := func(suffix string) node {
		return espalier.Owns("Server"+suffix, func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
			d := deployment.Object()
			d.Name, d.OwnerReferences = "server-"+suffix, nil
			return d, nil
		}).Labeled()
	}
	for range 20 {
		c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resources.Widget{}).
			WithObjects(widget.Object()).Build()
		config := reconcilers.Config{
			Client: c, APIReader: c, Recorder: record.NewFakeRecorder(1000), Tracker: tracker.New(scheme, time.Hour),
		}
		root := espalier.For(config, &feature.Feature[*resources.Widget]{
			Name:       "Search",
			Reconciler: espalier.AtOnce(serves("b"), keeps("a"), espalier.Steps(keeps("b"), serves("a"))),
		})
		key := client.ObjectKeyFromObject(widget.Object())
		for range 3 {
			if _, err := root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
		}
		w := &resources.Widget{}
		if err := c.Get(t.Context(), key, w); err != nil {
			t.Fatal(err)
		}
		condition := reconcilers.GetCondition(w, "SearchReady")
		got := fmt.Sprint(condition.Status, " ", condition.Reason, " ", condition.Message)
		const want = "False Creating Deployment default/server-a: 0 of 3 replicas available; " +
			"Deployment default/server-b: 0 of 3 replicas available"
		if got != want {
			t.Fatalf("the condition is %q, want %q", got, want)
		}
		var names []string
		for _, d := range w.Status.Features[0].Dependents {
			names = append(names, d.Name)
		}
		if want := []string{"server-a", "server-b"}; !slices.Equal(names, want) {
			t.Fatalf("the feature waits for %q, want %q", names, want)
		}
	}
}

// The root hears of what the nodes of branches found out: which conditions are not needed, and when to look again.
func TestAtOnceTellsTheRoot(t *testing.T) {
	keeps := func(name string) *child {
		return espalier.Owns(name, func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: strings.ToLower(name)},
			}, nil
		}).Labeled().Reports(name)
	}
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resources.Widget{}).
		WithObjects(widget.Object(), taken).Build()
	config := reconcilers.Config{
		Client: c, APIReader: c, Recorder: record.NewFakeRecorder(1000), Tracker: tracker.New(scheme, time.Hour),
	}
	never := func(context.Context, *resources.Widget) bool { return false }
	root := espalier.For(config, espalier.AtOnce[*resources.Widget](
		espalier.When("When", never, keeps("Off")), keeps("Taken").Unwatched(), keeps("Fine"),
	))
	key := client.ObjectKeyFromObject(widget.Object())
	var result reconcilers.Result
	for range 3 {
		var err error
		if result, err = root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	w := &resources.Widget{}
	if err := c.Get(t.Context(), key, w); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, condition := range w.Status.Conditions {
		got = append(got, fmt.Sprint(condition.Type, "=", condition.Status, " ", condition.Reason))
	}
	want := []string{
		"ChildReady=Unknown Initializing", "Fine=True Ready", "Ready=False AlreadyExists", "Taken=False AlreadyExists",
	}
	if !slices.Equal(got, want) || result.RequeueAfter != time.Minute {
		t.Errorf("the conditions are %q, and the next request is after %s, want %q and a minute", got,
			result.RequeueAfter, want)
	}
}

// A row has its requests in the order of the nodes, and so have its replays with faults.
func TestAtOnceInRows(t *testing.T) {
	const finalizer = "test.espalier.dev/registered"
	tree := func() node {
		return espalier.Steps[*resources.Widget](
			espalier.AtOnce[*resources.Widget](
				keeps("a"), keeps("b"),
				espalier.Runs("Register", func(context.Context, *resources.Widget) error { return nil }).
					Finalizes(finalizer, func(context.Context, *resources.Widget) error { return nil }),
			),
			keeps("c"),
		)
	}
	finalized := func(w *resources.Widget) { w.Finalizers = []string{finalizer} }
	patch := []rtesting.PatchRef{{
		Group: "test.espalier.dev", Kind: "Widget", Namespace: "default", Name: "gadget", PatchType: types.MergePatchType,
		Patch: []byte(`{"metadata":{"finalizers":["` + finalizer + `"],"resourceVersion":"999"}}`),
	}}
	patched := []rtesting.Event{rtesting.NewEvent(widget, scheme, corev1.EventTypeNormal, "FinalizerPatched",
		"Patched finalizer %q", finalizer)}
	run(t, tests{
		"a new widget": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(finalized, ready("a"), ready("b"), ready("c")).Object(),
			ExpectCreates:  []object{kept("a"), kept("b"), kept("c")},
			ExpectPatches:  patch,
			ExpectEvents:   slices.Concat(events("Created", "a", "b"), patched, events("Created", "c")),
		},
		"one fails": {
			Resource:       widget.With(with("a fails"), finalized).Object(),
			ExpectResource: widget.With(with("a fails"), finalized, ready("b")).Object(),
			ExpectCreates:  []object{kept("b")},
			ExpectEvents:   events("Created", "b"),
			ShouldErr:      true,
		},
	}, tree)
}

// stateOf returns what there is of a resource and of its children.
func stateOf(t *testing.T, c client.Client, key types.NamespacedName) string {
	t.Helper()
	w := &resources.Widget{}
	err := c.Get(t.Context(), key, w)
	if apierrs.IsNotFound(err) {
		return "gone"
	}
	var list corev1.ConfigMapList
	if err := errors.Join(err, c.List(t.Context(), &list)); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v\n%v\n%+v\n", w.Finalizers, w.Labels, w.Status)
	for _, c := range list.Items {
		text += fmt.Sprintf("%s/%s %v %v\n", c.Namespace, c.Name, c.Labels, c.Data)
	}
	return text
}
