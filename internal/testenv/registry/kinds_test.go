package registry_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/testenv/registry"
)

// traits are what an API server does to the objects of a kind, whatever is in them.
type traits struct {
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	Status     bool   `json:"status"`
	Generation bool   `json:"generation"`
	// Raised has the metadata whose change raises the generation.
	Raised              []string `json:"raised,omitempty"`
	UnconditionalUpdate bool     `json:"unconditionalUpdate"`
	CreateOnUpdate      bool     `json:"createOnUpdate"`
	// StatusWrites has the metadata that an update of the status writes.
	StatusWrites []string `json:"statusWrites,omitempty"`
	BadNames     []string `json:"badNames"`
}

const traitsFile = "testdata/kinds.traits.yaml"

func readTraits(t testing.TB) map[string]traits {
	t.Helper()
	data, err := os.ReadFile(traitsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]traits
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// metadataFields are changes of the metadata.
var metadataFields = []struct {
	name string
	set  func(client.Object)
	is   func(client.Object) bool
}{
	{"annotations",
		func(o client.Object) { o.SetAnnotations(map[string]string{"traits": "x"}) },
		func(o client.Object) bool { return o.GetAnnotations()["traits"] == "x" }},
	{"finalizers",
		func(o client.Object) { o.SetFinalizers([]string{"example.com/traits"}) },
		func(o client.Object) bool { return slices.Contains(o.GetFinalizers(), "example.com/traits") }},
	{"labels",
		func(o client.Object) { o.SetLabels(map[string]string{"traits": "x"}) },
		func(o client.Object) bool { return o.GetLabels()["traits"] == "x" }},
	{"ownerReferences",
		func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "x"}})
		},
		func(o client.Object) bool { return len(o.GetOwnerReferences()) > 0 }},
}

var traitNames = []string{"1x", "a.b", "a:b", "a%b", strings.Repeat("a", 60)}

// TestKinds compares the traits of the built-in kinds with those on an API server.
func TestKinds(t *testing.T) {
	t.Parallel()
	wants := readTraits(t)
	for _, obj := range samples(t, "kinds", sampleNamespace) {
		name := sampleName(obj)
		got, want := traitsOnStrategy(t, obj), wants[name]
		if g, w := asYAML(t, got), asYAML(t, want); g != w {
			t.Errorf("%s: got\n%s\nwant\n%s", name, g, w)
		}
	}
}

func asYAML(t testing.TB, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func traitsOnStrategy(t *testing.T, obj client.Object) traits {
	found, s := builtIn(t, obj)
	got := traits{Resource: found.Resource, Namespaced: found.Scope == registry.Namespaced, Status: s.HasStatus(),
		UnconditionalUpdate: found.AllowUnconditionalUpdate, CreateOnUpdate: found.AllowCreateOnUpdate}
	obj.SetUID(sampleUID)
	obj.SetGeneration(5)
	s.PrepareForCreate(obj)
	got.Generation = obj.GetGeneration() == 1
	if got.Generation == found.WithoutGeneration {
		t.Errorf("%s: the type and its strategy do not agree on the generation", sampleName(obj))
	}
	obj.SetResourceVersion("1")
	status := obj.DeepCopyObject().(client.Object)
	for _, field := range metadataFields {
		changed := obj.DeepCopyObject().(client.Object)
		field.set(changed)
		s.PrepareForUpdate(changed, obj, "")
		if !field.is(changed) {
			t.Errorf("%s: the %s are not updated", sampleName(obj), field.name)
		}
		if changed.GetGeneration() != obj.GetGeneration() {
			got.Raised = append(got.Raised, field.name)
		}
		field.set(status)
	}
	if got.Status {
		s.PrepareForUpdate(status, obj, "status")
		got.StatusWrites = written(status)
	}
	for _, name := range traitNames {
		named := obj.DeepCopyObject().(client.Object)
		named.SetName(name)
		for _, err := range s.Validate(named) {
			if err.Field == "metadata.name" {
				got.BadNames = append(got.BadNames, name)
				break
			}
		}
	}
	return got
}

// written lists what was changed of the metadata.
func written(obj client.Object) []string {
	var list []string
	for _, field := range metadataFields {
		if field.is(obj) {
			list = append(list, field.name)
		}
	}
	return list
}

// TestKindsOnServer finds the traits out on an API server.
func TestKindsOnServer(t *testing.T) {
	t.Parallel()
	c := serverClient(t)
	namespace := plane.Namespace(t)
	got := map[string]traits{}
	seen := map[schema.GroupVersionKind]bool{}
	served := servedKinds(t)
	for _, obj := range samples(t, "kinds", namespace) {
		if obj.GetNamespace() == "" {
			obj.SetName(strings.Replace(obj.GetName(), "registry", namespace, 1))
		}
		kind := obj.GetObjectKind().GroupVersionKind()
		seen[kind] = true
		name := strings.Replace(sampleName(obj), namespace, "registry", 1)
		got[name] = traitsOnServer(t, c, served[kind], obj)
	}
	if *update {
		if err := os.WriteFile(traitsFile, []byte(asYAML(t, got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range readTraits(t) {
		if g, w := asYAML(t, got[name]), asYAML(t, want); g != w {
			t.Errorf("%s: the API server has\n%s\nand not\n%s", name, g, w)
		}
	}
	for kind, kindTraits := range served {
		found, ok := registry.BuiltIn(kind)
		if !ok {
			t.Errorf("%s is not built in", kind)
			continue
		}
		if found.Resource != kindTraits.Resource || (found.Scope == registry.Namespaced) != kindTraits.Namespaced {
			t.Errorf("%s: got %s with the scope %d, want %+v", kind, found.Resource, found.Scope, kindTraits)
		}
		if kindTraits.UnconditionalUpdate && !seen[kind] {
			t.Errorf("%s has no sample", kind)
		}
	}
}

// servedKinds returns the kinds of k8s.io/client-go that an API server serves, with what discovery says of them.
// Those that can be updated have UnconditionalUpdate.
func servedKinds(t *testing.T) map[schema.GroupVersionKind]traits {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(plane.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := found.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[schema.GroupVersionKind]traits{}
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if strings.Contains(r.Name, "/") || !clientgoscheme.Scheme.Recognizes(kind) ||
				r.Kind == "CustomResourceDefinition" {
				continue
			}
			served[kind] = traits{Resource: r.Name, Namespaced: r.Namespaced,
				Status: slices.ContainsFunc(list.APIResources, func(s metav1.APIResource) bool {
					return s.Name == r.Name+"/status"
				}),
				UnconditionalUpdate: slices.Contains(r.Verbs, "update"),
			}
		}
	}
	return served
}

// traitsOnServer creates an object, and sees what an API server answers to requests that store nothing.
func traitsOnServer(t *testing.T, c client.Client, got traits, obj client.Object) traits {
	ctx := t.Context()
	title := sampleName(obj)
	for _, name := range traitNames {
		named := obj.DeepCopyObject().(client.Object)
		named.SetName(name)
		if err := c.Create(ctx, named, client.DryRunAll); err != nil {
			got.BadNames = append(got.BadNames, name)
		}
	}
	missing := obj.DeepCopyObject().(client.Object)
	got.CreateOnUpdate = c.Update(ctx, missing, client.DryRunAll) == nil
	obj.SetGeneration(5)
	if err := c.Create(ctx, obj); err != nil {
		t.Errorf("%s: %v", title, err)
		return got
	}
	if obj.GetNamespace() == "" {
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(ctx), obj) })
	}
	got.Generation = obj.GetGeneration() == 1
	unconditional := obj.DeepCopyObject().(client.Object)
	unconditional.SetResourceVersion("")
	got.UnconditionalUpdate = c.Update(ctx, unconditional, client.DryRunAll) == nil
	status := obj.DeepCopyObject().(client.Object)
	for _, field := range metadataFields {
		changed := obj.DeepCopyObject().(client.Object)
		field.set(changed)
		if err := c.Update(ctx, changed, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if changed.GetGeneration() != obj.GetGeneration() {
			got.Raised = append(got.Raised, field.name)
		}
		field.set(status)
	}
	if got.Status {
		if err := c.Status().Update(ctx, status, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		got.StatusWrites = written(status)
	}
	return got
}
