package server_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// cluster is a server and a client of an administrator.
type cluster struct {
	*testing.T
	client.WithWatch
	config  *rest.Config
	storage *storage.Storage
	ctx     context.Context
}

// run runs a test with a server in a bubble, and lets two virtual minutes pass after it.
func run(t *testing.T, options server.Options, test func(c cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kept := storage.New(storage.Options{})
		defer kept.Close()
		options.Storage = kept.Decorator()
		s, err := server.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(2 * time.Minute)
		defer s.Stop()
		config := &rest.Config{Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1}
		test(cluster{t, newClient(t, config), config, kept, t.Context()})
	})
}

func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// as returns a client that impersonates somebody.
func (c cluster) as(user string, groups ...string) client.Client {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return newClient(c.T, config)
}

// must fails the test at an error.
func (c cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// refused fails the test if the error is not of a kind.
func (c cluster) refused(err error, is func(error) bool) {
	c.Helper()
	if !is(err) {
		c.Errorf("the error is %v", err)
	}
}

func (c cluster) create(obj client.Object) { c.Helper(); c.must(c.Create(c.ctx, obj)) }
func (c cluster) get(obj client.Object) {
	c.Helper()
	c.must(c.Get(c.ctx, client.ObjectKeyFromObject(obj), obj))
}

// meta is the metadata of an object in the namespace default.
func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(name), Data: map[string]string{"a": "1"}}
}

// request asks for the version of the server.
func request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Host+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
