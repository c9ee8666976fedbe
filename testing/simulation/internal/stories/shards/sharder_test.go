package shards_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/testing/internal/informers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// hooks is the address of the sharder's webhook.
const hooks = "sharder.sharding-system.svc:443"

// engine is the sharder of a world.
type engine struct {
	w       *simulation.World
	webhook http.Handler
}

// startEngine runs a sharder until the story ends, and makes the ring.
func startEngine(w *simulation.World, seed uint64) *engine {
	w.Helper()
	server := w.Config("sharder")
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		// Nobody starts another one if it gives up, so it outlasts an API server that is away for long.
		Controller: config.Controller{SkipNameValidation: new(true), CacheSyncTimeout: time.Hour},
		Cache:      cache.Options{NewInformer: informers.New(seed, "sharder")},
	})
	if err != nil {
		w.Fatal(err)
	}
	s, err := sharder.New(mgr, sharder.Options{
		Webhook: admissionregistrationv1.WebhookClientConfig{
			CABundle: stories.Authority(w, "sharder"),
			Service:  &admissionregistrationv1.ServiceReference{Namespace: sharder.Namespace, Name: "sharder"},
		},
		Lists: &old{Reader: mgr.GetAPIReader(), random: rand.New(rand.NewPCG(seed, 2))},
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the sharder ends with %v", err)
		}
	})
	e := &engine{w, s.Webhook()}
	e.listen(true)
	w.Create(newRing(w, firstRing))
	return e
}

// listen says whether the webhook can be called.
func (e *engine) listen(listens bool) {
	if listens {
		e.w.ServeWebhooks(hooks, e.webhook)
	} else {
		e.w.ServeWebhooks(hooks, nil)
	}
}

// newRing returns a ring of the operator.
func newRing(w *simulation.World, name string) client.Object {
	w.Helper()
	obj, err := sharder.Ring{Name: name, Spec: sharder.RingSpec{Resources: []sharder.RingResource{{
		GroupResource:       metav1.GroupResource{Group: resources.GroupVersion.Group, Resource: "widgets"},
		ControlledResources: []metav1.GroupResource{{Resource: "configmaps"}, {Resource: "secrets"}},
	}}}}.Object()
	if err != nil {
		w.Fatal(err)
	}
	return obj
}

// old lists what was there at a list up to a minute ago, half of the times, as the watch cache of an API server may.
type old struct {
	client.Reader
	mu     sync.Mutex
	random *rand.Rand
	last   map[string]listed
}

// listed is a list, and when it was read.
type listed struct {
	list client.ObjectList
	at   time.Time
}

// List implements [client.Reader].
func (o *old) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o.mu.Lock()
	kind := list.GetObjectKind().GroupVersionKind().String()
	last, stale := o.last[kind], o.random.IntN(2) == 0
	o.mu.Unlock()
	if last.list != nil && time.Since(last.at) < time.Minute && stale {
		reflect.ValueOf(list).Elem().Set(reflect.ValueOf(last.list.DeepCopyObject()).Elem())
		return nil
	}
	if err := o.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]listed{}
	}
	o.last[kind] = listed{list.DeepCopyObject().(client.ObjectList), time.Now()}
	return nil
}
