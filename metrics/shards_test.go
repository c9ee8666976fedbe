package metrics_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// A process that is a shard has the series of it from the set-up on, although it does not hold its Lease.
func TestShardsAreCounted(t *testing.T) {
	s, err := shard.New("ring", "one", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// As Join has it for the root.
	shard.Filter(s, resources.GroupVersion.WithKind("Widget"), true)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(resources.GroupVersion.WithKind("Widget"), meta.RESTScopeNamespace)
	server := &rest.Config{Host: "https://localhost:1"}
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme:         resources.NewScheme(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := widget("w")
	asked.Labels = map[string]string{
		"shard.alpha.sharding.timebertt.dev/ring": "one", "drain.alpha.sharding.timebertt.dev/ring": "true",
	}
	data := "a"
	w := newWorld(t, metrics.Options{}, asked)
	root := &widgetRoot{Name: "root", Config: w.config.WithShard(s), Reconciler: settings(&data)}
	if err := root.SetupWithManager(t.Context(), s.Manager(mgr)); err != nil {
		t.Fatal(err)
	}
	names := []string{
		"espalier_shard_held", "espalier_shard_arrivals_total", "espalier_shard_drains_total",
		"espalier_shard_refused_writes_total",
	}
	expect := func(when string, held, arrivals, drains, refused float64) {
		t.Helper()
		w.expect(t, when, map[string]float64{
			"shard_held ring=ring": held, "shard_arrivals_total ring=ring": arrivals,
			"shard_drains_total ring=ring": drains, "shard_refused_writes_total ring=ring": refused,
		}, names...)
	}
	expect("before the Lease is held", 0, 0, 0, 0)

	shard.Guard(s, server)
	transport, err := rest.TransportFor(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.Host, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := transport.RoundTrip(req); err == nil {
			t.Errorf("%s is answered, want an error", method)
			_ = answer.Body.Close()
		}
	}
	expect("after a read and a write without the Lease", 0, 0, 0, 1)

	shard.Hold(s)
	kind := resources.GroupVersion.WithKind("Widget").GroupKind()
	shard.Arrive(s, shard.Resource{
		GroupKind: kind, NamespacedName: types.NamespacedName{Namespace: asked.Namespace, Name: asked.Name},
	})
	if _, err := root.Reconcile(t.Context(), requestFor("w")); err != nil {
		t.Fatal(err)
	}
	expect("after a drain", 1, 1, 1, 1)
}
