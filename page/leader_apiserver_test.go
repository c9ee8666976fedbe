package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// replica is one of several processes of an operator of Widgets.
type replica struct {
	page   *page.Page
	tree   *world
	server *httptest.Server
	series *prometheus.Registry
	stop   func()
}

// get asks a replica for a page.
func (r *replica) get(t *testing.T, path string) element {
	t.Helper()
	w := world{page: r.page}
	return w.document(t, path)
}

// measures returns an error unless a replica has the metrics of a leader, which come after the page knows a resource.
func (r *replica) measures(t *testing.T) error {
	t.Helper()
	names := r.families(t)
	for _, want := range []string{"espalier_resources", "espalier_node_outcomes_total"} {
		if !slices.Contains(names, want) {
			return fmt.Errorf("it has only the metrics %q, without %s", names, want)
		}
	}
	return nil
}

// families returns the names of the metrics that a replica has.
func (r *replica) families(t *testing.T) []string {
	t.Helper()
	families, err := r.series.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	return names
}

// newReplica starts a replica, whose root has the name of the namespace. The peers know the URL of each.
func newReplica(t *testing.T, namespace, name string, peers map[string]*replica) *replica {
	t.Helper()
	config := plane.Config(t)
	clients := kubernetes.NewForConfigOrDie(config)
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "operator", clients.CoreV1(),
		clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name + "_1234"})
	if err != nil {
		t.Fatal(err)
	}
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		// On a machine that is busy, a request for the Lease may take long. The one who ends releases it.
		LeaseDuration: new(5 * time.Minute), RenewDeadline: new(4 * time.Minute),
		RetryPeriod: new(100 * time.Millisecond),
	}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{series: prometheus.NewRegistry()}
	r.page = page.New(page.Options{
		Access: page.OnLoopback(), Replica: name, Elected: mgr.Elected(),
		Leader: page.LeaseHolder(mgr.GetAPIReader(), types.NamespacedName{Namespace: namespace, Name: "operator"}),
		Peer: func(identity string) string {
			host, _, _ := strings.Cut(identity, "_")
			return peers[host].server.URL + "/espalier/"
		},
	})
	observer, err := metrics.New(metrics.Options{Registerer: r.series})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/espalier/", r.page)
	r.server = httptest.NewServer(mux)
	t.Cleanup(r.server.Close)
	r.tree = newWorld(t, page.Options{})
	observed := reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour).WithObserver(r.page, observer)
	root := r.tree.newRoot(observed)
	// The metrics of queues are of the process and by name, and those of a queue that ended stay as they were.
	root.ControllerName = namespace
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r.stop = func() {
		if cancel == nil {
			return
		}
		cancel()
		cancel = nil
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// Of two replicas one leads. The page of the other says so, knows no resources, and links to the same page of the
// leader. Its metrics are absent, not zero. When the leader ends, the other takes over.
func TestAStandbyLinksToTheLeader(t *testing.T) {
	namespace, peers := plane.Namespace(t), map[string]*replica{}
	c := newClient(t, plane.Config(t))
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	first := newReplica(t, namespace, "first", peers)
	peers["first"] = first
	knows := func(r *replica) error {
		if n := len(r.page.List(namespace, "", "", 1).Rows); n != 1 {
			return fmt.Errorf("it knows %d resources, not 1", n)
		}
		return nil
	}
	controlplanetest.Eventually(t, "the first leads", func(context.Context) error { return knows(first) })
	second := newReplica(t, namespace, "second", peers)
	peers["second"] = second
	path := "resource?name=w&namespace=" + namespace + "&root=" + namespace
	controlplanetest.Eventually(t, "the second is set up", func(context.Context) error {
		if len(second.page.Overview().Roots) == 0 {
			return errors.New("it has no root")
		}
		return nil
	})
	// A manager starts its controllers before it says that it is elected.
	says := func(r *replica, at, want, link string) {
		t.Helper()
		controlplanetest.Eventually(t, "the page "+at, func(context.Context) error {
			banner := r.get(t, at).byID(t, "replica")
			got := ""
			for _, a := range banner.all("a") {
				got = a.attribute("href")
			}
			if banner.text() != want || got != link {
				return fmt.Errorf("it says %q with a link to %q, not %q with %q", banner.text(), got, want, link)
			}
			return nil
		})
	}
	says(first, path, "Replica first leads", "")
	says(second, path, "Replica second does not lead, first does", first.server.URL+"/espalier/"+path)
	says(second, "", "Replica second does not lead, first does", first.server.URL+"/espalier/")
	if knows(second) == nil {
		t.Error("the standby knows a resource")
	}
	controlplanetest.Eventually(t, "the leader measures", func(context.Context) error { return first.measures(t) })
	if names := second.families(t); len(names) > 0 {
		t.Errorf("the standby has the metrics %q, not none", names)
	}
	controlplanetest.Eventually(t, "the dump has an empty queue of the root", func(context.Context) error {
		var dumped struct{ Queues map[string]map[string]float64 }
		if err := json.Unmarshal([]byte(serve(t, first.page, "dump").body), &dumped); err != nil {
			return err
		}
		if depth, ok := dumped.Queues[namespace]["workqueue_depth"]; !ok || depth != 0 {
			return fmt.Errorf("it has the queues %v", dumped.Queues)
		}
		return nil
	})

	first.stop()
	controlplanetest.Eventually(t, "the second leads", func(context.Context) error { return knows(second) })
	says(second, path, "Replica second leads", "")
	controlplanetest.Eventually(t, "the new leader measures", func(context.Context) error { return second.measures(t) })
}
