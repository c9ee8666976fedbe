package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// definitionObject is the unstructured form, for schemes without the type.
func definitionObject(t *testing.T) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(widgets())
	must(t, err)
	return &unstructured.Unstructured{Object: content}
}

func noMatch(t *testing.T, err error) {
	t.Helper()
	if !meta.IsNoMatchError(err) {
		t.Errorf("got the error %v, want NoMatch", err)
	}
}

func TestKindWithoutADefinition(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	w := widget("one")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appVersion.WithKind("WidgetList"))
	noMatch(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), w))
	noMatch(t, c.List(t.Context(), list))
	noMatch(t, c.Create(t.Context(), w))
	noMatch(t, c.Update(t.Context(), w))
	noMatch(t, c.Patch(t.Context(), w, client.Merge))
	noMatch(t, c.Delete(t.Context(), w))
	noMatch(t, c.DeleteAllOf(t.Context(), w, client.InNamespace("ns")))
	_, err := c.Watch(t.Context(), list)
	noMatch(t, err)
	w.SetAPIVersion("v2")
	w.SetKind("ConfigMap")
	noMatch(t, c.Create(t.Context(), w))
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{})
	must(t, c.Create(t.Context(), definitionObject(t)))
	one, two := widget("one"), held(widget("two"))
	unstructured.RemoveNestedField(one.Object, "spec", "color")
	must(t, c.Create(t.Context(), one))
	must(t, c.Create(t.Context(), two))
	if color, _, _ := unstructured.NestedString(one.Object, "spec", "color"); color != "blue" {
		t.Errorf("the answer is %v, want the color blue", one.Object)
	}
	invalid := widget("three")
	invalid.Object["spec"] = map[string]any{"size": int64(-1)}
	reason(t, c.Create(t.Context(), invalid), metav1.StatusReasonInvalid, "spec.size")

	must(t, c.Delete(t.Context(), definitionObject(t)))
	reason(t, c.Create(t.Context(), widget("three")), metav1.StatusReasonForbidden,
		"create not allowed while custom resource definition is terminating")
	s.CollectGarbage()
	if exists(t, c, one) || !exists(t, c, two) || !exists(t, c, definitionObject(t)) {
		t.Errorf("there are one: %t, two: %t, the definition: %t, want the last two", exists(t, c, one),
			exists(t, c, two), exists(t, c, definitionObject(t)))
	}
	released := read(t, c, two)
	released.SetFinalizers(nil)
	must(t, c.Update(t.Context(), released))
	s.CollectGarbage()
	if exists(t, c, definitionObject(t)) {
		t.Error("the definition is there without objects, want it gone")
	}
	noMatch(t, c.Get(t.Context(), client.ObjectKeyFromObject(one), one))
	must(t, c.Create(t.Context(), definitionObject(t)))
	must(t, c.Create(t.Context(), widget("one")))
}

// TestDefinitionOfAGoType defines a kind of the scheme: from then on it has a schema, and is gone with the definition.
func TestDefinitionOfAGoType(t *testing.T) {
	t.Parallel()
	d := widgets()
	d.Name = "apps.example.com"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "apps", Kind: "App"}
	s := newStore(t, d)
	c := s.Client(store.ClientOptions{})
	a := app("one")
	must(t, c.Create(t.Context(), a))
	if a.Spec.Size != 1 || a.UID == "" {
		t.Errorf("the answer is %+v, want the size 1 and a UID", a)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(appVersion.WithKind("App"))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(a), u))
	if color, _, _ := unstructured.NestedString(u.Object, "spec", "color"); color != "blue" {
		t.Errorf("the stored object is %v, want the color blue", u.Object)
	}
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	must(t, err)
	must(t, c.Delete(t.Context(), &unstructured.Unstructured{Object: content}))
	s.CollectGarbage()
	noMatch(t, c.Get(t.Context(), client.ObjectKeyFromObject(a), a))
}

func TestOtherServedVersion(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets(), widget("one"))
	beta := widget("one")
	beta.SetAPIVersion("example.com/v1beta1")
	got := read(t, c, beta)
	if got.GetAPIVersion() != "example.com/v1beta1" {
		t.Errorf("the object is %v, want the version example.com/v1beta1", got)
	}
	got.SetLabels(map[string]string{"a": "b"})
	must(t, c.Update(t.Context(), got))
	if got := read(t, c, widget("one")); got.GetAPIVersion() != "example.com/v1" || got.GetLabels()["a"] != "b" {
		t.Errorf("the object is %v, want the version example.com/v1 and the label a=b", got)
	}
	beta.SetAPIVersion("example.com/v2")
	noMatch(t, c.Get(t.Context(), client.ObjectKeyFromObject(beta), beta))
}

func TestRESTMapper(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets())
	mapper := s.RESTMapper()
	for _, test := range []struct {
		kind     schema.GroupVersionKind
		resource string
		scope    meta.RESTScopeName
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", meta.RESTScopeNameNamespace},
		{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "nodes", meta.RESTScopeNameRoot},
		{schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}, "endpoints", meta.RESTScopeNameNamespace},
		{appVersion.WithKind("App"), "apps", meta.RESTScopeNameNamespace},
		{appVersion.WithKind("Widget"), "widgets", meta.RESTScopeNameNamespace},
	} {
		for _, versions := range [][]string{nil, {test.kind.Version}, {"v7", test.kind.Version}} {
			mapping, err := mapper.RESTMapping(test.kind.GroupKind(), versions...)
			must(t, err)
			if mapping.Resource.Resource != test.resource || mapping.Scope.Name() != test.scope ||
				mapping.GroupVersionKind != test.kind {
				t.Errorf("%s: the mapping is %+v, want the resource %s and the scope %s", test.kind, mapping,
					test.resource, test.scope)
			}
		}
		got, err := mapper.KindFor(test.kind.GroupVersion().WithResource(test.resource))
		must(t, err)
		if got != test.kind {
			t.Errorf("got %s, want %s", got, test.kind)
		}
	}
	_, err := mapper.RESTMapping(appVersion.WithKind("Unknown").GroupKind())
	noMatch(t, err)
	found := map[string]bool{}
	for _, list := range s.Resources() {
		for _, r := range list.APIResources {
			found[list.GroupVersion+" "+r.Name] = true
		}
	}
	for _, want := range []string{
		"v1 configmaps", "v1 nodes/status", "example.com/v1beta1 widgets", "example.com/v1 apps",
	} {
		if !found[want] {
			t.Errorf("%s is not discovered, want it to be", want)
		}
	}
}

// TestScopeOfAGoType asks for the scope of a kind that nothing but its objects says.
func TestScopeOfAGoType(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{})
	for _, test := range []struct {
		given client.Object
		want  bool
	}{{app("namespaced"), true}, {&App{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, false}} {
		give(t, s, test.given)
		got, err := c.IsObjectNamespaced(&App{})
		must(t, err)
		if got != test.want {
			t.Errorf("with %s: namespaced is %t, want %t", test.given.GetName(), got, test.want)
		}
	}
}

func TestFurtherResources(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{Scheme: newScheme(), Resources: []*metav1.APIResourceList{{
		GroupVersion: "other.com/v1", APIResources: []metav1.APIResource{
			{Name: "things", Kind: "Thing", Namespaced: true}, {Name: "things/status", Kind: "Thing", Namespaced: true},
		},
	}}})
	give(t, s, namespace("ns"))
	u := widget("one")
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "other.com", Version: "v1", Kind: "Thing"})
	must(t, s.Client(store.ClientOptions{}).Create(t.Context(), u))
}

// conditions renders the conditions of a definition.
func conditions(t *testing.T, c client.Reader, name string) string {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: name}, d))
	var all []string
	for _, condition := range d.Status.Conditions {
		all = append(all, string(condition.Type)+"="+string(condition.Status))
	}
	return strings.Join(all, " ")
}

// newDefinitionStore returns a store with the Go type of definitions.
func newDefinitionStore(t *testing.T, given ...client.Object) *store.Store {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, apiextensionsv1.AddToScheme(scheme))
	s := store.New(store.Options{Scheme: scheme, Now: func() time.Time { return now }})
	give(t, s, namespace("ns"))
	give(t, s, given...)
	return s
}

// TestSecondDefinitionOfAKind creates a definition with the kind of another, which was given or created.
func TestSecondDefinitionOfAKind(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{true, false} {
		s := newDefinitionStore(t)
		c := s.Client(store.ClientOptions{})
		if given {
			give(t, s, widgets())
		} else {
			must(t, c.Create(t.Context(), widgets()))
		}
		must(t, c.Create(t.Context(), widget("one")))
		second := widgets()
		second.Name, second.Spec.Names.Plural, second.Spec.Names.Singular = "others.example.com", "others", "other"
		must(t, c.Create(t.Context(), second.DeepCopy()))
		if got := conditions(t, c, second.Name); got != "NamesAccepted=False Established=False" {
			t.Errorf("given %t: the second definition has the conditions %s, want NamesAccepted=False Established=False",
				given, got)
		}
		must(t, c.Delete(t.Context(), second.DeepCopy()))
		s.CollectGarbage()
		if exists(t, c, second) || !exists(t, c, widget("one")) {
			t.Errorf("given %t: there are the second: %t, an object of the first: %t, want the object alone", given,
				exists(t, c, second), exists(t, c, widget("one")))
		}
		must(t, c.Create(t.Context(), second.DeepCopy()))
		must(t, c.Delete(t.Context(), widgets()))
		for s.CollectGarbage() {
		}
		if got := conditions(t, c, second.Name); got != "NamesAccepted=True Established=True" {
			t.Errorf("given %t: with free names, the second definition has the conditions %s, want both true", given,
				got)
		}
		must(t, c.Create(t.Context(), widget("two")))
	}
}

func TestGivenDefinitionsOfOneKind(t *testing.T) {
	t.Parallel()
	second := widgets()
	second.Name, second.Spec.Names.Plural = "others.example.com", "others"
	err := newDefinitionStore(t, widgets()).Give(second)
	reason(t, err, "", "CustomResourceDefinition widgets.example.com has the kind already")
}

// TestChangedDefinition reads and writes an object that was stored with another schema.
func TestChangedDefinition(t *testing.T) {
	t.Parallel()
	definition := widgets()
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].SelectableFields = nil // A selectable field must be one of the schema.
	}
	s := newDefinitionStore(t, definition)
	c := s.Client(store.ClientOptions{})
	must(t, c.Create(t.Context(), widget("one")))
	schema := func(change func(spec map[string]apiextensionsv1.JSONSchemaProps)) {
		d := read(t, c, widgets())
		for _, version := range d.Spec.Versions {
			change(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties)
		}
		must(t, c.Update(t.Context(), d))
	}
	spec := func() string { return fmt.Sprint(read(t, c, widget("one")).Object["spec"]) }
	before := read(t, c, widget("one")).GetResourceVersion()
	var color apiextensionsv1.JSONSchemaProps
	schema(func(spec map[string]apiextensionsv1.JSONSchemaProps) {
		color = spec["color"]
		delete(spec, "color")
		spec["shape"] = apiextensionsv1.JSONSchemaProps{
			Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"round"`)},
		}
	})
	if got := spec(); got != "map[shape:round size:1]" {
		t.Errorf("with the other schema it is read as %s, want map[shape:round size:1]", got)
	}
	schema(func(spec map[string]apiextensionsv1.JSONSchemaProps) { spec["color"] = color })
	if got := spec(); got != "map[color:blue shape:round size:1]" {
		t.Errorf("what is stored is read as %s, want map[color:blue shape:round size:1]", got)
	}
	if got := read(t, c, widget("one")).GetResourceVersion(); got != before {
		t.Errorf("the version is %s, want %s as before", got, before)
	}
	for _, written := range []bool{true, false} {
		before := s.Revision()
		must(t, c.Update(t.Context(), read(t, c, widget("one"))))
		if got := s.Revision() > before; got != written {
			t.Errorf("an update of what was read writes %t, want %t", got, written)
		}
	}
}
