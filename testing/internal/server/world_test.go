package server_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// world is a world of a server, and a client of it.
type world struct {
	testing.TB
	client.WithWatch
	*storage.Storage
	ctx context.Context
}

// shared returns the server that tests share.
func shared(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.Shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newWorld forks that of the shared server.
func newWorld(t testing.TB) world {
	t.Helper()
	return worldOf(t, shared(t), nil)
}

func worldOf(t testing.TB, s *server.Server, now func() time.Time) world {
	t.Helper()
	c, err := client.NewWithWatch(worldConfig(s), client.Options{Scheme: worldScheme(), Mapper: worldMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return world{t, c, nil, t.Context()}.in(s.Worlds().Fork(now))
}

func worldConfig(s *server.Server) *rest.Config {
	return &rest.Config{Host: server.Host, Transport: s.Transport(), QPS: -1}
}

// in returns the same client in another storage.
func (w world) in(kept *storage.Storage) world {
	w.Storage = kept
	w.ctx = server.World{Storage: kept}.In(w.Context())
	return w
}

// fork returns a fork of the world.
func (w world) fork() world { return w.in(w.Fork(nil)) }

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refused fails the test if the error is not of a kind.
func (w world) refused(err error, is func(error) bool) {
	w.Helper()
	if !is(err) {
		w.Errorf("the error is %v", err)
	}
}

func (w world) create(objects ...client.Object) {
	w.Helper()
	for _, obj := range objects {
		w.must(w.Create(w.ctx, obj))
	}
}

func (w world) get(obj client.Object) {
	w.Helper()
	w.must(w.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
}

var worldScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

// worldMapper knows the kinds of the tests: discovery does not know what worlds define.
var worldMapper = sync.OnceValue(func() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Service", "Pod", "ServiceAccount", "Event"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), apimeta.RESTScopeRoot)
	m.Add(autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), apimeta.RESTScopeNamespace)
	m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), apimeta.RESTScopeNamespace)
	m.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), apimeta.RESTScopeRoot)
	for _, gv := range []schema.GroupVersion{
		{Group: "example.com", Version: "v1"}, {Group: "example.com", Version: "v2"}, {Group: "nodot", Version: "v1"},
		{Version: "v1"}, {Group: "stable.k8s.io", Version: "v1"},
	} {
		m.Add(gv.WithKind("Widget"), apimeta.RESTScopeNamespace)
		m.Add(gv.WithKind("Planet"), apimeta.RESTScopeRoot)
	}
	return m
})

func widgetList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("WidgetList")
	return list
}

// widgetsWith is a definition whose size has another default.
func widgetsWith(size string) *apiextensionsv1.CustomResourceDefinition {
	d := widgets()
	spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	property := spec.Properties["size"]
	property.Default = &apiextensionsv1.JSON{Raw: []byte(size)}
	spec.Properties["size"], spec.Default = property, nil
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	return d
}

// sizeOf creates a widget and returns the size that it gets by default.
func (w world) sizeOf(name string) int64 {
	w.Helper()
	obj := widget(name, 0)
	w.create(obj)
	size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
	return size
}

// everywhere runs a test n times in bubbles of their own and n times outside, eight at a time.
func everywhere(t *testing.T, n int, test func(t *testing.T, i int)) {
	t.Helper()
	runs := make(chan int, 2*n)
	for i := range 2 * n {
		runs <- i
	}
	close(runs)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range runs {
				if i%2 == 1 {
					t.Run("outside", func(t *testing.T) { test(t, i) })
				} else {
					t.Run("bubble", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, i) }) })
				}
			}
		})
	}
	workers.Wait()
}
