package app

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var scheme = NewScheme()

// app is the resource of most rows.
var (
	app     = rtesting.NewFixture(&App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app"}})
	created = app.With(func(a *App) { a.Status.Phase = "Created" })
)

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// cloud has buckets. A request with a key that is known makes no other bucket.
type cloud struct{ buckets []string }

var (
	theCloud    = &cloud{}
	cloudClient = rtesting.HTTP(theCloud)
	external    = rtesting.External{
		Reset: func() { theCloud.buckets = nil },
		End:   func() any { return theCloud.buckets },
	}
)

func (c *cloud) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	key, err := io.ReadAll(request.Body)
	if err != nil {
		panic(err)
	}
	id := string(key)
	if id == "" {
		id = "bucket-" + strconv.Itoa(len(c.buckets))
	}
	if !slices.Contains(c.buckets, id) {
		c.buckets = append(c.buckets, id)
	}
	_, _ = io.WriteString(w, id)
}

type row = rtesting.SubReconcilerTestCase[*App]

func TestNodes(t *testing.T) {
	one := configMap("ns", "one")
	one.Data = map[string]string{"app": "app"}
	rtesting.NodeTests[*App]{
		"lost create": {
			Metadata:      map[string]any{"bug": "lost create"},
			Resource:      app.Object(),
			GivenObjects:  []client.Object{configMap("ns", "other"), configMap("ns", "another")},
			ExpectCreates: []client.Object{child(app.Object(), "one"), child(app.Object(), "two")},
		},
		"double create": {
			Metadata:       map[string]any{"bug": "double create"},
			Resource:       app.Object(),
			ExpectCreates:  []client.Object{generated(app.Object())},
			ExpectResource: app.With(func(a *App) { a.Status.Child = "app-001" }).Object(),
		},
		"finalizer too late": {
			Metadata:      map[string]any{"bug": "finalizer too late"},
			Resource:      app.Object(),
			ExpectCreates: []client.Object{child(app.Object(), "one")},
			ExpectPatches: []rtesting.PatchRef{{
				Group: "example.com", Kind: "App", Namespace: "ns", Name: "app", PatchType: types.MergePatchType,
				Patch: []byte(`{"metadata":{"finalizers":["example.com/app"]}}`),
			}},
			ExpectResource: app.With(func(a *App) { a.Finalizers = []string{finalizer} }).Object(),
		},
		"status as memory": {
			Metadata:            map[string]any{"bug": "status as memory"},
			Resource:            app.Object(),
			ExpectCreates:       []client.Object{child(app.Object(), "one")},
			ExpectStatusUpdates: []client.Object{created},
			ExpectResource:      created.Object(),
		},
		"stale read": {
			Metadata:       map[string]any{"bug": "stale read"},
			Resource:       app.Object(),
			Until:          rtesting.Rest(),
			ExpectCreates:  []client.Object{generated(app.Object()), generated(app.Object())},
			ExpectResource: created.Object(),
		},
		"external call twice": {
			Metadata:       map[string]any{"bug": "external call twice"},
			Resource:       app.Object(),
			Externals:      []rtesting.External{external},
			ExpectResource: app.With(func(a *App) { a.Status.Bucket = "bucket-0" }).Object(),
		},
		"ignored status code": {
			Metadata:       map[string]any{"bug": "ignored status code"},
			Resource:       app.Object(),
			Externals:      []rtesting.External{external},
			ExpectResource: app.With(func(a *App) { a.Status.Bucket = "app" }).Object(),
		},
		"swallowed error": {
			Metadata:      map[string]any{"bug": "swallowed error"},
			Resource:      app.Object(),
			ExpectCreates: []client.Object{child(app.Object(), "one")},
		},
		"lost answer": {
			Metadata:       map[string]any{"bug": "lost answer"},
			Resource:       app.Object(),
			ExpectCreates:  []client.Object{child(app.Object(), "one")},
			ExpectResource: created.Object(),
		},
		"endless loop": {
			Metadata:      map[string]any{"bug": "endless loop"},
			Resource:      app.Object(),
			ExpectCreates: []client.Object{child(app.Object(), "one")},
		},
		"overwrite": {
			Metadata:      map[string]any{"bug": "overwrite"},
			Resource:      app.Object(),
			GivenObjects:  []client.Object{configMap("ns", "other"), configMap("ns", "one")},
			ExpectUpdates: []client.Object{one},
		},
		// Rows of nodes are pasted here.
	}.Run(t, scheme, func(_ *testing.T, tc *row, _ reconcilers.Config) reconcilers.SubReconciler[*App] {
		return node(bugs[tc.Metadata["bug"].(string)])
	})
}

func TestRoots(t *testing.T) {
	leaving := app.With(rtesting.Terminating[*App](finalizer)).Object()
	rtesting.RootTests{
		"leak": {
			Request:      reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "app"}},
			GivenObjects: []client.Object{configMap("ns", "other"), leaving, configMap("elsewhere", "app")},
			ExpectPatches: []rtesting.PatchRef{{
				Group: "example.com", Kind: "App", Namespace: "ns", Name: "app", PatchType: types.MergePatchType,
				Patch: []byte(`{"metadata":{"finalizers":null}}`),
			}},
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "elsewhere", Name: "app"}},
		},
		// Rows of roots are pasted here.
	}.RunRoot(t, scheme, func(c reconcilers.Config) reconcile.Reconciler {
		return &reconcilers.ResourceReconciler[*App]{Reconciler: node(bugs["leak"]), Config: c}
	})
}
