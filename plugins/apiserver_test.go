package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

// plane serves Widgets and, once TestMain has added them, Capabilities.
var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true}}

// capabilityDefinition is what the file has that users install.
func capabilityDefinition() *apiextensionsv1.CustomResourceDefinition {
	text, err := os.ReadFile("config/plugins.espalier.dev_capabilities.yaml")
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err = errors.Join(err, yaml.UnmarshalStrict(text, definition)); err != nil {
		panic(err) // the file is one of this repository
	}
	return definition
}

// shown returns the capabilities of an operator that the cluster shows.
func (r *running) shown(ctx context.Context, operator string) (string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("plugins.espalier.dev/v1alpha1")
	list.SetKind("CapabilityList")
	err := r.List(ctx, list, client.MatchingLabels{"plugins.espalier.dev/operator": operator})
	var names []string
	for _, object := range list.Items {
		names = append(names, fmt.Sprint(object.GetName(), " ", object.Object["spec"].(map[string]any)["versions"]))
	}
	slices.Sort(names)
	return strings.Join(names, ", "), err
}

// The capabilities that there are are shown, and those of plugins that are gone are not, also if they went while the
// operator did not run.
func TestAdvertisement(t *testing.T) {
	f := newFolder(t)
	host := f.host(map[string]string{"databases": "program", "more": "version 17.1"})
	operator := plane.Namespace(t)
	config := plane.Config(t)
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	host.Advertise = &plugins.Advertisement{Client: live, Operator: operator}
	stale := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"category": "database", "type": "mysql", "operator": operator,
	}}}
	stale.SetAPIVersion("plugins.espalier.dev/v1alpha1")
	stale.SetKind("Capability")
	stale.SetName(operator + ".database.mysql")
	stale.SetLabels(map[string]string{"plugins.espalier.dev/operator": operator})
	other := stale.DeepCopy()
	other.SetName("other.database.mysql")
	other.SetLabels(map[string]string{"plugins.espalier.dev/operator": "other"})
	for _, object := range []client.Object{stale, other} {
		if err := live.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = live.Delete(context.Background(), other) })
	r := start(t, host)
	shows := func(operator, want string) {
		t.Helper()
		controlplanetest.Eventually(t, "the capabilities of "+operator, func(ctx context.Context) error {
			got, err := r.shown(ctx, operator)
			if err == nil && got != want {
				err = fmt.Errorf("they are %q, want %q", got, want)
			}
			return err
		})
	}
	shows(operator, "")
	one := f.put("databases", "")
	f.write(map[string]string{"databases": one})
	shows(operator, operator+".database.postgres [16 15]")
	f.write(map[string]string{"databases": one, "more": f.put("more", "")})
	shows(operator, operator+".database.postgres [17.1 16 15]")
	f.write(nil)
	shows(operator, "")
	shows("other", "other.database.mysql <nil>")
}

// running is an operator on an API server.
type running struct {
	client.Client
	t         testing.TB
	namespace string
	requests  *controlplane.Requests
	root      *reconcilers.ResourceReconciler[*resources.Widget]
	// stop ends the operator. The end of the test does so, too.
	stop func()
}

// start starts an operator with a capability.
func start(t testing.TB, host *plugins.Host) *running {
	t.Helper()
	return startWith(t, host)
}

// startWith starts an operator whose plugins may have objects of more kinds.
func startWith(t testing.TB, host *plugins.Host, kinds ...client.Object) *running {
	t.Helper()
	return startTree(t, plane.Namespace(t), host, capability(host).Creates(kinds...))
}

// startTree starts an operator for the resources of a namespace. Its host may be nil.
func startTree(
	t testing.TB, namespace string, host *plugins.Host, tree reconcilers.SubReconciler[*resources.Widget],
) *running {
	t.Helper()
	r := &running{t: t, namespace: namespace}
	config, requests := controlplane.CountRequests(plane.Config(t))
	r.requests = requests
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Cache.DefaultNamespaces = map[string]cache.Config{r.namespace: {}}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	r.root = espalier.For(reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour), tree)
	if err := r.root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	if host != nil {
		if err := mgr.Add(host); err != nil {
			t.Fatal(err)
		}
	}
	if r.Client, err = client.New(plane.Config(t), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v, want no error", err)
		}
	})
	t.Cleanup(r.stop)
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

// create creates a Widget with a value, and with other fields.
func (r *running) create(name, value string, fields ...string) *resources.Widget {
	r.t.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	w.Spec.Fields = map[string]string{"value": value}
	for i := 0; i < len(fields); i += 2 {
		w.Spec.Fields[fields[i]] = fields[i+1]
	}
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

	controlplanetest.Rest(r.t, r.requests)
	r.create("slow", "3", "do", "slow")
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

// meters is a definition of a kind that a plugin brings.
func meters(group string) *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.Name, crd.Spec.Group = "meters."+group, group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "meters", Singular: "meter", Kind: "Meter", ListKind: "MeterList",
	}
	crd.Spec.Versions[0].Subresources = nil
	return crd
}

// A plugin brings a kind of its own, and its objects are made when the cluster serves it. A kind of a group that the
// operator does not allow is not installed, and one that somebody else has installed is left alone.
func TestKindsOfPlugins(t *testing.T) {
	const group = "meters.example.com"
	definition := meters(group)
	meter := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"of": "fuel"}}}
	meter.SetAPIVersion(group + "/v1")
	meter.SetKind("Meter")
	plugin := plugins.Plugin{
		Category: "database", Definitions: []*apiextensionsv1.CustomResourceDefinition{definition},
		Types: []plugins.Type{{Name: "postgres", Dependents: func(
			_ context.Context, r plugins.Request,
		) ([]*plugins.Dependent, error) {
			object := meter.DeepCopy()
			object.SetName(r.Owner.Name + "-config")
			return []*plugins.Dependent{plugins.Owns("meter", object)}, nil
		}}},
	}
	live, err := client.New(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	operator := plane.Namespace(t)
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apiextensions.k8s.io/v1")
	found.SetKind("CustomResourceDefinition")
	t.Cleanup(func() {
		found.SetName(definition.Name)
		_ = live.Delete(context.Background(), found)
	})
	host := func(groups ...string) *plugins.Host {
		return &plugins.Host{
			InProcess: []plugins.Plugin{plugin},
			Install:   &plugins.Installation{Client: live, Operator: operator, Groups: groups},
		}
	}
	refused := startWith(t, host("other.example.com"), meter)
	refused.create("one", "")
	refused.shows("one", plugins.ReasonNoPlugin, "")
	if err := live.Get(t.Context(), client.ObjectKey{Name: definition.Name}, found); err == nil {
		t.Error("the definition is there although its group is not allowed, want none")
	}

	allowed := startWith(t, host(group), meter)
	allowed.create("one", "")
	allowed.shows("one", "Ready", "")
	made := meter.DeepCopy()
	key := client.ObjectKey{Namespace: allowed.namespace, Name: "one-config"}
	if err := live.Get(t.Context(), key, made); err != nil {
		t.Errorf("the object of the kind of the plugin is not there: %v, want it", err)
	}

	// Another version of the plugin has another definition. Then somebody else takes it over.
	changed := func(text string) string {
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = text
		again := startWith(t, host(group), meter)
		again.create("one", "")
		again.shows("one", "Ready", "")
		if err := live.Get(t.Context(), client.ObjectKey{Name: definition.Name}, found); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(found.Object, "spec", "versions")
		is, _, _ := unstructured.NestedString(versions[0].(map[string]any), "schema", "openAPIV3Schema", "description")
		return is
	}
	if is := changed("second"); is != "second" {
		t.Errorf("the definition is the one of %q, want that of the second plugin", is)
	}
	found.SetLabels(nil)
	if err := live.Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	if is := changed("third"); is != "second" {
		t.Errorf("the definition of somebody else is the one of %q, want it left alone", is)
	}
}
