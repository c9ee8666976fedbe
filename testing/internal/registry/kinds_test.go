package registry_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

// TestKinds compares the traits of the built-in kinds with those on an API server.
func TestKinds(t *testing.T) {
	t.Parallel()
	wants := registrytest.KnownTraits(t)
	for _, obj := range registrytest.Kinds(t, registrytest.Namespace) {
		name := registrytest.Name(obj)
		got, want := traitsOnStrategy(t, obj), wants[name]
		if g, w := registrytest.Encode(t, got), registrytest.Encode(t, want); g != w {
			t.Errorf("%s: got\n%s\nwant\n%s", name, g, w)
		}
	}
}

func traitsOnStrategy(t *testing.T, obj client.Object) registrytest.Traits {
	found, s := builtIn(t, obj)
	got := registrytest.Traits{Resource: found.Resource, Namespaced: found.Scope == registry.Namespaced, Status: s.HasStatus,
		UnconditionalUpdate: found.AllowUnconditionalUpdate, CreateOnUpdate: found.AllowCreateOnUpdate}
	obj.SetUID(sampleUID)
	obj.SetGeneration(5)
	s.PrepareForCreate(obj)
	got.Generation = obj.GetGeneration() == 1
	if got.Generation == found.WithoutGeneration {
		t.Errorf("%s: the object has a generation: %t, want the opposite of WithoutGeneration, %t",
			registrytest.Name(obj), got.Generation, found.WithoutGeneration)
	}
	obj.SetResourceVersion("1")
	status := obj.DeepCopyObject().(client.Object)
	for _, field := range registrytest.MetadataFields {
		changed := obj.DeepCopyObject().(client.Object)
		field.Set(changed)
		s.PrepareForUpdate(changed, obj, "")
		if !field.Is(changed) {
			t.Errorf("%s: the %s are not updated, want them to be", registrytest.Name(obj), field.Name)
		}
		if changed.GetGeneration() != obj.GetGeneration() {
			got.Raised = append(got.Raised, field.Name)
		}
		field.Set(status)
	}
	if got.Status {
		s.PrepareForUpdate(status, obj, "status")
		got.StatusWrites = registrytest.Written(status)
	}
	for _, name := range registrytest.Names {
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

// TestKindsOnServer finds the traits out on an API server. It is not parallel: other tests install definitions there,
// which would be discovered too.
func TestKindsOnServer(t *testing.T) {
	namespace := plane.Namespace(t)
	served := registrytest.ServedKinds(t, plane.Config(t))
	got := registrytest.FindTraits(t, serverClient(t), namespace, served)
	if !record(t, registrytest.TraitsFile, got) {
		compare(t, registrytest.KnownTraits(t), got)
	}
	sampled := map[schema.GroupVersionKind]bool{}
	for _, obj := range registrytest.Kinds(t, namespace) {
		sampled[obj.GetObjectKind().GroupVersionKind()] = true
	}
	for kind, traits := range served {
		found, ok := registry.BuiltIn(kind)
		if !ok {
			t.Errorf("%s is not built in, want it to be", kind)
			continue
		}
		if found.Resource != traits.Resource || (found.Scope == registry.Namespaced) != traits.Namespaced {
			t.Errorf("%s: got %s with the scope %d, want %+v", kind, found.Resource, found.Scope, traits)
		}
		if traits.UnconditionalUpdate && !sampled[kind] {
			t.Errorf("%s has no sample, want one", kind)
		}
	}
}

// TestDiscoveredOnServer looks at the discovery of an API server. It is not parallel, like [TestKindsOnServer].
func TestDiscoveredOnServer(t *testing.T) {
	got := registrytest.Discover(t, plane.Config(t))
	if !record(t, registrytest.DiscoveredFile, got) {
		compare(t, registrytest.Discovered(t), got)
	}
}
