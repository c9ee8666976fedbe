package registrytest

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Traits are what an API server does to the objects of a kind, whatever is in them.
type Traits struct {
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
	// BadNames are those of [Names] that are refused.
	BadNames []string `json:"badNames"`
}

// Names are tried as names of objects of each kind.
var Names = []string{"1x", "a.b", "a:b", "a%b", strings.Repeat("a", 60)}

// MetadataFields are changes of the metadata, and whether an object has them.
var MetadataFields = []struct {
	Name string
	Set  func(client.Object)
	Is   func(client.Object) bool
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

// Written lists what was changed of the metadata.
func Written(obj client.Object) []string {
	var list []string
	for _, field := range MetadataFields {
		if field.Is(obj) {
			list = append(list, field.Name)
		}
	}
	return list
}

// KnownTraits returns the traits on a real API server, by the names of the samples in [Kinds].
func KnownTraits(t testing.TB) map[string]Traits {
	t.Helper()
	return decodeYAML[map[string]Traits](t, TraitsFile)
}

// FindTraits finds the traits out on an API server, with the samples in [Kinds]. Served are its kinds.
func FindTraits(
	t testing.TB, c client.Client, namespace string, served map[schema.GroupVersionKind]Traits,
) map[string]Traits {
	t.Helper()
	found := map[string]Traits{}
	for _, obj := range Kinds(t, namespace) {
		name := Name(obj)
		if obj.GetNamespace() == "" {
			obj.SetName(strings.Replace(obj.GetName(), prefix, namespace+"-", 1))
		}
		found[name] = findTraits(t, c, served[obj.GetObjectKind().GroupVersionKind()], obj)
	}
	return found
}

// ServedKinds returns the kinds of k8s.io/client-go that an API server serves, with what discovery says of them. Those
// that can be updated have UnconditionalUpdate.
func ServedKinds(t testing.TB, config *rest.Config) map[schema.GroupVersionKind]Traits {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := found.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[schema.GroupVersionKind]Traits{}
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if strings.Contains(r.Name, "/") || !clientgoscheme.Scheme.Recognizes(kind) ||
				r.Kind == "CustomResourceDefinition" {
				continue
			}
			served[kind] = Traits{Resource: r.Name, Namespaced: r.Namespaced,
				Status: slices.ContainsFunc(list.APIResources, func(s metav1.APIResource) bool {
					return s.Name == r.Name+"/status"
				}),
				UnconditionalUpdate: slices.Contains(r.Verbs, "update"),
			}
		}
	}
	return served
}

// findTraits creates an object, and sees what an API server answers to requests that store nothing.
func findTraits(t testing.TB, c client.Client, got Traits, obj client.Object) Traits {
	t.Helper()
	ctx := t.Context()
	title := Name(obj)
	for _, name := range Names {
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
	for _, field := range MetadataFields {
		changed := obj.DeepCopyObject().(client.Object)
		field.Set(changed)
		if err := c.Update(ctx, changed, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if changed.GetGeneration() != obj.GetGeneration() {
			got.Raised = append(got.Raised, field.Name)
		}
		field.Set(status)
	}
	if got.Status {
		if err := c.Status().Update(ctx, status, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		got.StatusWrites = Written(status)
	}
	return got
}
