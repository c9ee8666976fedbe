package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/simulation/internal/server"
	"github.com/espalier-dev/espalier/simulation/internal/storage"
)

// run runs a test in a bubble with a server, and lets two virtual minutes pass after it.
func run(t *testing.T, options server.Options, test func(t *testing.T, config *rest.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if options.Storage == nil {
			options.Storage = storage.New(storage.Options{}).Decorator()
		}
		s, err := server.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		test(t, &rest.Config{Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1})
		s.Stop()
		time.Sleep(2 * time.Minute)
	})
}

func TestConfigMap(t *testing.T) {
	run(t, server.Options{}, func(t *testing.T, config *rest.Config) {
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := c.Create(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		t.Log(m)
	})
}
