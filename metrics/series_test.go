package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// count returns the number of series of each metric; a histogram has one for each bucket, and two more.
func (w *world) count(t *testing.T) (counts map[string]int, all int) {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts = map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series := 1
			if h := m.GetHistogram(); h != nil {
				series = len(h.GetBucket()) + 1 + 2 // the bucket without a bound is not in the list
			}
			counts[family.GetName()] += series
			all += series
		}
	}
	return counts, all
}

// endings are all ways in which a node ends.
func endings() []func(ctx context.Context) error {
	returns := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	kind := schema.GroupResource{Resource: "configmaps"}
	return []func(ctx context.Context) error{
		returns(nil),
		func(ctx context.Context) error {
			reconcilers.Note(ctx, reconcilers.Write{Verb: "update"})
			return nil
		},
		returns(reconcilers.ErrQuiet),
		returns(fmt.Errorf("%w", reconcilers.ErrHaltSubReconcilers)),
		returns(errors.New("boom")),
		returns(&reconcilers.KindNotServedError{}),
		returns(reconcile.TerminalError(errors.New("boom"))),
		returns(apierrs.NewConflict(kind, "a", errors.New("boom"))),
		returns(apierrs.NewForbidden(kind, "a", errors.New("boom"))),
		returns(apierrs.NewAlreadyExists(kind, "a")),
	}
}

// A root of 20 nodes has at most 500 series, once each node has ended in all ways, and with 18 conditions of all statuses.
func TestARootHasFewSeries(t *testing.T) {
	w := newWorld(t, metrics.Options{}, widget("w"))
	end := endings()[0]
	nodes := reconcilers.Always[*resources.Widget]{}
	status := metav1.ConditionUnknown
	for i := range 19 {
		nodes = append(nodes, &widgetSync{
			Name: "node-" + strconv.Itoa(i),
			Sync: func(ctx context.Context, w *resources.Widget) error {
				meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
					Type: "Condition" + strconv.Itoa(i%16), Status: status, Reason: "Because",
				})
				return end(ctx)
			},
		})
	}
	root := &widgetRoot{Name: "root", Config: w.config, Reconciler: nodes}
	for range 2 {
		for i, how := range endings() {
			end = how
			status = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[i%3]
			_, _ = root.Reconcile(t.Context(), requestFor("w"))
		}
	}
	counts, all := w.count(t)
	for name, want := range map[string]int{
		"espalier_node_duration_seconds": 20 * 7, "espalier_node_outcomes_total": 20 * 10,
		"espalier_conditions": 18 * 3, "espalier_condition_transitions_total": 18 * 3,
	} {
		if counts[name] != want {
			t.Errorf("%s has %d series, want %d", name, counts[name], want)
		}
	}
	if all > 500 {
		t.Errorf("there are %d series, want at most 500: %v", all, counts)
	}
	t.Logf("there are %d series", all)
}

// Names that an author makes up for each request do not make series without end.
func TestSeriesAreBounded(t *testing.T) {
	w := newWorld(t, metrics.Options{}, widget("w"))
	request := 0
	root := &widgetRoot{
		Name: "root", Config: w.config,
		Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
			request++
			meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
				Type: "Condition" + strconv.Itoa(request%60), Status: metav1.ConditionTrue, Reason: "Because",
			})
			_, err := reconcilers.ReconcileNested(ctx, reconcilers.SubReconciler[*resources.Widget](&widgetSync{
				Name: "made-" + strconv.Itoa(request),
				Sync: func(context.Context, *resources.Widget) error { return nil },
			}), widget)
			return err
		}},
	}
	for range 600 {
		if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
			t.Fatal(err)
		}
	}
	counts, _ := w.count(t)
	if got, want := counts["espalier_node_duration_seconds"], 500*7; got != want {
		t.Errorf("there are %d series of durations, want %d for 500 paths", got, want)
	}
	if got, want := counts["espalier_conditions"], 50*3; got != want {
		t.Errorf("there are %d series of conditions, want %d for 50 types", got, want)
	}
	others := w.series(t, "espalier_node_duration_seconds")["node_duration_seconds path=Other"]
	if want := 600.0 - (500 - 3); others != want {
		t.Errorf("%v nodes are counted with the path Other, want %v", others, want)
	}
}

// Observers of one registry share the metrics, and another metric of the same name is an error.
func TestObserversShareTheMetrics(t *testing.T) {
	first := newWorld(t, metrics.Options{}, widget("w"))
	second, err := metrics.New(metrics.Options{Registerer: first.registry})
	if err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, metrics.Options{}, widget("w"))
	other.config = reconcilers.Config{Client: other.client}.WithObserver(second)
	for _, config := range []reconcilers.Config{first.config, other.config} {
		root := &widgetRoot{Name: "root", Config: config, Reconciler: widgetSequence{}}
		if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
			t.Fatal(err)
		}
	}
	first.expect(t, "two observers", map[string]float64{"resources": 2}, "espalier_resources")

	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "espalier_resources", Help: "Another one."}))
	const want = "unable to register the metric espalier_resources: "
	if _, err := metrics.New(metrics.Options{Registerer: registry}); err == nil || len(err.Error()) <= len(want) ||
		err.Error()[:len(want)] != want {
		t.Errorf("the error is %v, want %s and a reason", err, want)
	}
}

// Several trees in one reconciler work for the same resources, which are counted once.
func TestEmbeddedTreesShareResources(t *testing.T) {
	w := newWorld(t, metrics.Options{}, widget("w"))
	for _, name := range []string{"first", "second"} {
		tree := &reconcilers.Embedded[*resources.Widget]{
			Name: name, Config: w.config,
			Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
				widget.Status.MarkChildReady(ctx)
				return nil
			}},
		}
		if _, err := tree.Reconcile(t.Context(), widget("w")); err != nil {
			t.Fatal(err)
		}
	}
	got := w.series(t, "espalier_resources", "espalier_conditions")
	for name, want := range map[string]float64{"resources": 1, "conditions status=True type=ChildReady": 1} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// Names that are no UTF-8, which Prometheus refuses, do not end the process.
func TestNamesThatAreNoUTF8(t *testing.T) {
	w := newWorld(t, metrics.Options{PerResource: true}, widget("w"))
	root := &widgetRoot{
		Name: "ro\xffot", ControllerName: "contro\xffller", Config: w.config,
		Reconciler: &widgetSync{Name: "sy\xffnc", Sync: func(ctx context.Context, widget *resources.Widget) error {
			reconcilers.Note(ctx, feature.Phase{Feature: "fea\xffture", Status: "True", Reason: "Healthy"})
			reconcilers.Note(ctx, reconcilers.Write{Object: reconcilers.ObjectRef{
				GroupVersionKind: schema.GroupVersionKind{Group: "gro\xffup", Kind: "Ki\xffnd"},
			}})
			meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
				Type: "Condi\xfftion", Status: metav1.ConditionTrue, Reason: "Because",
			})
			return nil
		}},
	}
	if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
		t.Fatal(err)
	}
	const want = "conditions status=True type=Condi\uFFFDtion"
	if got := w.series(t, "espalier_conditions"); got[want] != 1 {
		t.Errorf("the series are %v, want one of %q", got, want)
	}
}

// A webhook does not know which resources there are, so that only its nodes are counted.
func TestWebhooksHaveNoResources(t *testing.T) {
	w := newWorld(t, metrics.Options{})
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
		Name: "hook", Config: w.config,
		Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
			widget.Status.MarkChildReady(ctx)
			return nil
		}},
	}
	ctx := logr.NewContext(t.Context(), logr.Discard())
	built, err := hook.BuildWithContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	response := built.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "default", Name: "w",
		Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"default","name":"w"}}`)},
	}})
	if !response.Allowed {
		t.Fatalf("the response is %v, want that it is allowed", response.Result)
	}
	w.expect(t, "a webhook", map[string]float64{
		"node_duration_seconds path=hook": 1, "node_duration_seconds path=hook/sync": 1,
	}, "espalier_node_duration_seconds", "espalier_resources", "espalier_conditions")
}

// The trackers of roots are counted once each.
func TestTrackersAreCountedOnce(t *testing.T) {
	w := newWorld(t, metrics.Options{}, widget("w"), widget("v"))
	for _, name := range []string{"w", "v"} {
		root := &widgetRoot{
			Name: "root", Config: w.config,
			Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
				config := reconcilers.RetrieveConfigOrDie(ctx)
				for _, tracked := range []string{"x", "y"} {
					if err := config.Tracker.TrackObject(newTracked(tracked), widget); err != nil {
						return err
					}
				}
				return nil
			}},
		}
		if _, err := root.Reconcile(t.Context(), requestFor(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(t, "two roots", map[string]float64{"tracker_watchers": 2, "tracker_references": 4},
		"espalier_tracker_watchers", "espalier_tracker_references")
}

// watching is a cluster that components watch.
type watching struct{ stopped bool }

func (w *watching) Size() (types, objects int, running bool) { return 2, 30, !w.stopped }

// What components watch is counted in all clusters, until they do not watch it any more.
func TestWatchesOfComponentsAreCounted(t *testing.T) {
	first, second := &watching{}, &watching{}
	w := newWorld(t, metrics.Options{}, widget("w"))
	root := &widgetRoot{
		Name: "root", Config: w.config,
		Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
			reconcilers.Note(ctx, first)
			reconcilers.Note(ctx, second)
			return nil
		}},
	}
	if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
		t.Fatal(err)
	}
	names := []string{"espalier_component_watches", "espalier_component_cached_objects"}
	w.expect(t, "two clusters", map[string]float64{"component_watches": 4, "component_cached_objects": 60}, names...)
	first.stopped = true
	w.expect(t, "one is left", map[string]float64{"component_watches": 2, "component_cached_objects": 30}, names...)
	second.stopped = true
	w.expect(t, "none is left", map[string]float64{}, names...)
}

// The watches of a controller that was set up are shown once it has a request, not while another process is the leader.
func TestWatchesAreCounted(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(resources.GroupVersion.WithKind("Widget"), meta.RESTScopeNamespace)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://localhost:1"}, ctrl.Options{
		Scheme:         resources.NewScheme(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	data := "a"
	w := newWorld(t, metrics.Options{}, widget("w"))
	root := &widgetRoot{Name: "root", Config: w.config, Reconciler: settings(&data)}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	if counts, all := w.count(t); all != 0 {
		t.Errorf("there are series before the first request: %v", counts)
	}
	if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "after a request", map[string]float64{"watches": 1}, "espalier_watches")
}

func newTracked(name string) *resources.Widget {
	tracked := widget(name)
	tracked.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	return tracked
}
