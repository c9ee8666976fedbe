package plugins_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// plane serves Widgets.
var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()}, GarbageCollection: true,
}}

// running is an operator on an API server.
type running struct {
	client.Client
	t         *testing.T
	namespace string
	requests  *controlplane.Requests
}

// start starts an operator with a capability.
func start(t *testing.T, host *plugins.Host) *running {
	t.Helper()
	r := &running{t: t, namespace: plane.Namespace(t)}
	config, requests := controlplane.CountRequests(plane.Config(t))
	r.requests = requests
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Cache.DefaultNamespaces = map[string]cache.Config{r.namespace: {}}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	root := espalier.For(reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour), capability(host))
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(host); err != nil {
		t.Fatal(err)
	}
	if r.Client, err = client.New(plane.Config(t), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v, want no error", err)
		}
	})
	return r
}

// shows waits until the condition of a Widget has the reason, and its object the value.
func (r *running) shows(name, reason, value string) {
	r.t.Helper()
	controlplanetest.Eventually(r.t, "the widget "+name, func(ctx context.Context) error {
		found, object := &resources.Widget{}, &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: r.namespace, Name: name}
		if err := r.Get(ctx, key, found); err != nil {
			return err
		}
		is := meta.FindStatusCondition(found.Status.Conditions, condition)
		if is == nil || is.Reason != reason {
			return fmt.Errorf("the condition is %v, want the reason %s", is, reason)
		}
		key.Name += "-config"
		if err := r.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
			return err
		}
		if object.Data["value"] != value {
			return fmt.Errorf("the object has %v, want the value %q", object.Data, value)
		}
		return nil
	})
}

func (r *running) create(name, value string) *resources.Widget {
	r.t.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	w.Spec.Fields = map[string]string{"value": value}
	if err := r.Create(r.t.Context(), w); err != nil {
		r.t.Fatal(err)
	}
	return w
}

// On an API server, a resource waits for a plugin, goes on when it is there, and follows another one. At rest nobody
// asks anything, and the objects go with the resource.
func TestOnAnAPIServer(t *testing.T) {
	f := newFolder(t)
	r := start(t, f.host(map[string]string{"databases": "program"}))
	widgets := []*resources.Widget{r.create("one", "1"), r.create("two", "2")}
	r.shows("one", plugins.ReasonNoPlugin, "")

	f.write(map[string]string{"databases": f.put("databases", "")})
	r.shows("one", "Ready", "1")
	r.shows("two", "Ready", "2")

	controlplanetest.Eventually(t, "the operator is not at rest", func(context.Context) error {
		r.requests.Reset()
		time.Sleep(500 * time.Millisecond)
		if r.requests.Total() > 0 {
			return fmt.Errorf("it has made %s", r.requests)
		}
		return nil
	})
	r.create("slow", "3")
	slow := &resources.Widget{}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "slow"}, slow); err != nil {
		t.Fatal(err)
	}
	slow.Spec.Fields["do"] = "slow"
	if err := r.Update(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	r.shows("slow", "Ready", "3")
	// What somebody changes is corrected.
	object := &corev1.ConfigMap{}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "one-config"}, object); err != nil {
		t.Fatal(err)
	}
	object.Data["value"] = "changed"
	if err := r.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	r.shows("one", "Ready", "1")

	f.write(nil)
	r.shows("one", plugins.ReasonNoPlugin, "1")
	for _, w := range widgets {
		if err := r.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	controlplanetest.Eventually(t, "the objects are there", func(ctx context.Context) error {
		err := r.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%s is there", object.Name)
		}
		return client.IgnoreNotFound(err)
	})
}
