package controllers_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// cluster is a server with controllers, and a client of an administrator.
type cluster struct {
	*testing.T
	client.Client
	*controllers.Controllers
	*transport.Network
	ctx context.Context
	// requests are those of the controllers.
	requests *requests
}

// requests counts the requests of a transport, and passes them on.
type requests struct {
	mu  sync.Mutex
	log []string
	to  http.RoundTripper
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.log = append(r.log, request.Method+" "+request.URL.Path)
	r.mu.Unlock()
	return r.to.RoundTrip(request)
}

func (r *requests) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// run runs a test with a server and controllers in a bubble, and lets two virtual minutes pass after it.
func run(t *testing.T, options controllers.Options, test func(c cluster)) {
	t.Helper()
	if options.Failed == nil {
		options.Failed = func(err error) { t.Error(err) }
	}
	runWith(t, plan.Plan{}, options, test)
}

// runWith runs a test in which something goes wrong. The controllers are the actor "cluster" of the plan.
func runWith(t *testing.T, plan plan.Plan, options controllers.Options, test func(c cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &process{T: t, storage: storage.New(storage.Options{}), identities: &server.Identities{}}
		defer p.storage.Close()
		p.network = transport.New(transport.Options{Plan: plan, Restart: p.restart})
		p.start()
		defer time.Sleep(2 * time.Minute)
		defer p.stop()
		counted := &requests{to: p.network.Client("cluster")}
		running, err := controllers.Start(t.Context(), config(counted), options)
		if err != nil {
			t.Fatal(err)
		}
		defer running.Stop()
		test(cluster{
			t, newClient(t, config(p.network.Client("user"))), running, p.network, t.Context(), counted,
		})
	})
}

// process is a server that is started again when the network says so.
type process struct {
	*testing.T
	storage    *storage.Storage
	identities *server.Identities
	network    *transport.Network
	server     atomic.Pointer[server.Server]
}

func (p *process) start() {
	s, err := server.Start(context.Background(), server.Options{
		Storage: p.storage.Decorator(), Identities: p.identities,
	})
	if err != nil {
		p.Error(err)
		return
	}
	p.server.Store(s)
	p.network.Serve(server.RoundTripper(s.Handler()))
}

func (p *process) restart() {
	p.server.Load().Stop()
	p.start()
}

// stop lets a restart end first.
func (p *process) stop() {
	time.Sleep(time.Minute)
	p.server.Load().Stop()
}

func config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{Host: server.Host, Transport: transport, QPS: -1}
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must fails the test at an error.
func (c cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// try makes a request again while the server does not answer.
func (c cluster) try(request func() error) {
	c.Helper()
	err := request()
	for errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
		time.Sleep(time.Second)
		if err = request(); apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			// The first request had its effect.
			err = nil
		}
	}
	c.must(err)
}

func (c cluster) create(obj client.Object) {
	c.Helper()
	c.try(func() error { return c.Create(c.ctx, obj) })
}

func (c cluster) delete(obj client.Object, options ...client.DeleteOption) {
	c.Helper()
	c.try(func() error { return c.Delete(c.ctx, obj, options...) })
}

func (c cluster) get(obj client.Object) {
	c.Helper()
	c.must(c.Get(c.ctx, client.ObjectKeyFromObject(obj), obj))
}

// gone fails the test if an object is there.
func (c cluster) gone(objects ...client.Object) {
	c.Helper()
	for _, obj := range objects {
		if err := c.Get(c.ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			c.Errorf("%T %s is there: %v", obj, obj.GetName(), err)
		}
	}
}

// idle fails the test if the controllers make requests within an hour without events.
func (c cluster) idle() {
	c.Helper()
	before := len(c.requests.taken())
	time.Sleep(time.Hour)
	if after := c.requests.taken(); len(after) != before {
		c.Errorf("requests within an idle hour: %v", after[before:])
	}
}

// meta is the metadata of an object in the namespace default.
func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func configMap(name string, owners ...client.Object) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{ObjectMeta: meta(name)}
	for _, owner := range owners {
		obj.OwnerReferences = append(obj.OwnerReferences, ownedBy(owner))
	}
	return obj
}

// ownedBy returns a reference to an owner that waits in a foreground deletion.
func ownedBy(owner client.Object) metav1.OwnerReference {
	gvk, err := apiutil.GVKForObject(owner, clientgoscheme.Scheme)
	if err != nil {
		gvk = owner.GetObjectKind().GroupVersionKind()
	}
	return *metav1.NewControllerRef(owner, schema.GroupVersionKind(gvk))
}
