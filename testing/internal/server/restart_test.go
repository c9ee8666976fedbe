package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// TestRestart starts a second server on the storage of the first one.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := storage.New(storage.Options{})
		defer kept.Close()
		options := server.Options{
			Storage: kept.Decorator(), Identities: &server.Identities{},
			Definitions: []*apiextensionsv1.CustomResourceDefinition{widgets()},
		}
		generated := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "a-"}}
		}
		session := func(test func(c cluster)) {
			s, err := server.Start(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			config := &rest.Config{Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1}
			c := cluster{t, newClient(t, config), config, kept, t.Context()}
			test(c)
			w, err := c.Watch(c.ctx, &corev1.ConfigMapList{}, client.InNamespace("empty"))
			c.must(err)
			s.Stop()
			if event, ok := <-w.ResultChan(); ok {
				t.Errorf("a watch of a stopped server says %v", event)
			}
			if _, err := server.RoundTripper(s.Handler()).RoundTrip(request(t)); err == nil {
				t.Error("a stopped server answers")
			}
		}
		first := widget("a", 2)
		session(func(c cluster) {
			c.create(first)
			c.create(generated())
		})
		session(func(c cluster) {
			again := widget("a", 0)
			c.get(again)
			if again.GetUID() != first.GetUID() || again.GetResourceVersion() != first.GetResourceVersion() {
				c.Errorf("after a restart, %v is %v", first, again)
			}
			second := generated()
			c.create(second)
			if second.Name != "a-00002" {
				c.Errorf("the second name is %s", second.Name)
			}
			c.must(c.Delete(c.ctx, again))
			again = widget("a", 2)
			c.create(again)
			if again.GetUID() == first.GetUID() {
				c.Error("two objects have the same UID")
			}
		})
		time.Sleep(2 * time.Minute)
	})
}

// TestSameStart starts servers that have the same to do.
func TestSameStart(t *testing.T) {
	type outcome struct {
		revision int64
		now      time.Time
		uid      types.UID
	}
	outcomes := map[outcome]int{}
	options := server.Options{RBAC: true, Definitions: []*apiextensionsv1.CustomResourceDefinition{widgets()}}
	for range 10 {
		run(t, options, func(c cluster) {
			revision, now := c.storage.Revision(), time.Now()
			obj := widget("a", 1)
			c.create(obj)
			outcomes[outcome{revision, now, obj.GetUID()}]++
		})
	}
	if len(outcomes) > 1 {
		t.Errorf("the servers have started in different ways: %v", outcomes)
	}
}

func TestStartWithoutStorage(t *testing.T) {
	if _, err := server.Start(t.Context(), server.Options{}); err == nil {
		t.Error("a server without storage started")
	}
}

// TestFailedStart starts with a definition that the server refuses, and with a context that has ended.
func TestFailedStart(t *testing.T) {
	bad := widgets()
	bad.Spec.Versions[0].Schema = nil
	for name, test := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		ended      bool
		want       string
	}{
		"a bad definition": {definition: bad, want: "create CustomResourceDefinition widgets.example.com"},
		"an ended context": {definition: widgets(), ended: true, want: context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.ended {
					cancel()
				}
				_, err := server.Start(ctx, server.Options{
					Storage:     storage.New(storage.Options{}).Decorator(),
					Definitions: []*apiextensionsv1.CustomResourceDefinition{test.definition},
				})
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v", err)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
