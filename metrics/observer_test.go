package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

type (
	widgetRoot     = reconcilers.ResourceReconciler[*resources.Widget]
	widgetSync     = reconcilers.SyncReconciler[*resources.Widget]
	widgetSequence = reconcilers.Sequence[*resources.Widget]
	configMapNode  = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]
)

// world is a client in memory, and an observer with a registry of its own.
type world struct {
	client   client.WithWatch
	registry *prometheus.Registry
	config   reconcilers.Config
	// refuse is the error of a create, or nil.
	refuse error
}

func newWorld(t *testing.T, options metrics.Options, given ...client.Object) *world {
	t.Helper()
	w := &world{registry: prometheus.NewRegistry()}
	options.Registerer = w.registry
	observer, err := metrics.New(options)
	if err != nil {
		t.Fatal(err)
	}
	created := 0
	create := func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		if w.refuse != nil {
			return w.refuse
		}
		created++
		obj.SetUID(client.Object.GetUID(obj) + "u")
		obj.SetCreationTimestamp(metav1.Unix(int64(created), 0))
		return c.Create(ctx, obj, o...)
	}
	scheme := resources.NewScheme()
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(given...).
		WithStatusSubresource(&resources.Widget{}, &resources.Assembly{}).Build()
	w.client = interceptor.NewClient(inner, interceptor.Funcs{Create: create})
	w.config = reconcilers.Config{Client: w.client, APIReader: w.client, Tracker: tracker.New(scheme, 0)}.
		WithObserver(observer)
	return w
}

func widget(name string) *resources.Widget {
	return &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: "uid", Generation: 1,
	}}
}

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}}
}

// series returns the series of some metrics with their values; of a histogram, the number of observations.
func (w *world) series(t *testing.T, names ...string) map[string]float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, name := range names {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				var labels []string
				for _, label := range m.GetLabel() {
					if label.GetName() != "controller" && label.GetValue() != "" {
						labels = append(labels, label.GetName()+"="+label.GetValue())
					}
				}
				key := strings.TrimSpace(strings.TrimPrefix(name, "espalier_") + " " + strings.Join(labels, " "))
				all[key] = valueOf(m)
			}
		}
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// expect fails if the series of some metrics are others.
func (w *world) expect(t *testing.T, when string, want map[string]float64, names ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.series(t, names...)); diff != "" {
		t.Errorf("%s: the series differ (-want, +got):\n%s", when, diff)
	}
}

// settings is a child of a Widget.
func settings(data *string) *configMapNode {
	return &configMapNode{
		Name: "settings",
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
				Data:       map[string]string{"key": *data},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, _ *corev1.ConfigMap, _ error) {
			w.Status.MarkChildReady(ctx)
		},
	}
}

// Nodes are counted once, by path and outcome, and lists are not. Writes are counted by kind and result.
func TestNodesAndWritesAreCounted(t *testing.T) {
	boom := errors.New("boom")
	var fails error
	data := "a"
	w := newWorld(t, metrics.Options{}, widget("w"))
	root := &widgetRoot{
		Name: "root", ControllerName: "widgets", Config: w.config,
		Reconciler: widgetSequence{
			&widgetSync{Name: "fails", Sync: func(context.Context, *resources.Widget) error { return fails }},
			widgetSequence{
				&widgetSync{Name: "twice", Sync: func(context.Context, *resources.Widget) error { return nil }},
				&widgetSync{Name: "twice", Sync: func(context.Context, *resources.Widget) error { return nil }},
				settings(&data),
			},
		},
	}
	reconcile := func() { _, _ = root.Reconcile(t.Context(), requestFor("w")) }
	reconcile() // creates
	reconcile() // does nothing
	data = "b"
	reconcile() // updates
	fails = boom
	reconcile()
	fails = fmt.Errorf("%w", reconcilers.ErrHaltSubReconcilers)
	reconcile()
	fails, w.refuse = nil, boom
	if err := w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: widget("w").ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	reconcile()

	w.expect(t, "outcomes", map[string]float64{
		"node_outcomes_total outcome=Unchanged path=root":                  1,
		"node_outcomes_total outcome=Changed path=root":                    2,
		"node_outcomes_total outcome=Halted path=root":                     1,
		"node_outcomes_total class=Retry outcome=Error path=root":          2,
		"node_outcomes_total outcome=Unchanged path=root/fails":            4,
		"node_outcomes_total outcome=Halted path=root/fails":               1,
		"node_outcomes_total class=Retry outcome=Error path=root/fails":    1,
		"node_outcomes_total outcome=Unchanged path=root/twice":            8,
		"node_outcomes_total outcome=Unchanged path=root/settings":         1,
		"node_outcomes_total outcome=Changed path=root/settings":           2,
		"node_outcomes_total class=Retry outcome=Error path=root/settings": 1,
	}, "espalier_node_outcomes_total")
	w.expect(t, "durations", map[string]float64{
		"node_duration_seconds path=root":          6,
		"node_duration_seconds path=root/fails":    6,
		"node_duration_seconds path=root/twice":    8,
		"node_duration_seconds path=root/settings": 4,
	}, "espalier_node_duration_seconds")
	w.expect(t, "writes", map[string]float64{
		"writes_total kind=ConfigMap result=Success verb=create":                                         1,
		"writes_total kind=ConfigMap result=Success verb=update":                                         1,
		"writes_total kind=ConfigMap result=Retry verb=create":                                           1,
		"writes_total group=test.espalier.dev kind=Widget result=Success subresource=status verb=update": 1,
		"writes_saved_total": 1,
	}, "espalier_writes_total", "espalier_writes_saved_total")
}

// Point 16: a refusal that a node shows and does not return counts as an error, by which the alerts find it.
func TestRefusalsAreCountedAsErrors(t *testing.T) {
	data := "a"
	w := newWorld(t, metrics.Options{}, widget("w"))
	root := &widgetRoot{
		Name: "root", ControllerName: "widgets", Config: w.config, Reconciler: widgetSequence{settings(&data)},
	}
	w.refuse = apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "w", nil)
	if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
		t.Fatalf("a refusal is returned: %v", err)
	}
	w.expect(t, "outcomes", map[string]float64{
		"node_outcomes_total class=Forbidden outcome=Error path=root":          1,
		"node_outcomes_total class=Forbidden outcome=Error path=root/settings": 1,
	}, "espalier_node_outcomes_total")
}

// sum returns the sum of what a histogram has observed.
func (w *world) sum(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}
