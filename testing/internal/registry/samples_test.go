package registry_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

// update has the tests on an API server write what it answers to testdata.
var update = flag.Bool("update", false, "write what an API server answers to testdata")

// record writes what an API server answered, if that is asked for. It reports whether it did: the answers that tests
// know are those from before.
func record(t *testing.T, file string, answers any) bool {
	t.Helper()
	if *update {
		path := filepath.Join("registrytest", filepath.FromSlash(file))
		if err := os.WriteFile(path, []byte(registrytest.Encode(t, answers)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return *update
}

// builtIn returns the version of an object, with its type.
func builtIn(t testing.TB, obj client.Object) (registry.Type, registry.Version) {
	t.Helper()
	kind := obj.GetObjectKind().GroupVersionKind()
	found, ok := registry.BuiltIn(kind)
	if !ok {
		t.Fatalf("%s is not built in, want it to be", kind)
	}
	for _, v := range found.Versions {
		if v.Name == kind.Version {
			return found, v
		}
	}
	t.Fatalf("%s is not served, want it to be", kind)
	return registry.Type{}, registry.Version{}
}

// sampleUID is the UID that a store would have given to an object.
const sampleUID = "3c4a8a1e-0000-0000-0000-000000000001"

// withoutAdmission returns an object that is written as YAML without what admission plug-ins of an API server set.
func withoutAdmission(t testing.TB, text string) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	switch u.GetKind() {
	case "Pod":
		for _, name := range []string{"tolerations", "priority", "preemptionPolicy"} {
			unstructured.RemoveNestedField(u.Object, "spec", name)
		}
	case "Node":
		unstructured.RemoveNestedField(u.Object, "spec", "taints")
	case "PersistentVolume", "PersistentVolumeClaim", "VolumeAttributesClass":
		u.SetFinalizers(nil)
	}
	return registrytest.Encode(t, u.Object)
}

// TestCompleted compares what strategies make of the samples with what an API server made of them.
func TestCompleted(t *testing.T) {
	t.Parallel()
	wants := registrytest.Created(t)
	for _, obj := range registrytest.Samples(t, registrytest.Namespace) {
		name := registrytest.Name(obj)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := builtIn(t, obj)
			obj.SetUID(sampleUID)
			s.PrepareForCreate(obj)
			if errs := s.Validate(obj); len(errs) > 0 {
				t.Errorf("the object is refused with %v, want it accepted", errs.ToAggregate())
			}
			got := withoutAdmission(t, registrytest.Masked(t, obj, registrytest.Namespace))
			if want := withoutAdmission(t, wants[name]); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestCompletedOnServer creates the samples on an API server.
func TestCompletedOnServer(t *testing.T) {
	t.Parallel()
	got := registrytest.Create(t, serverClient(t), plane.Namespace(t))
	if record(t, registrytest.CreatedFile, got) {
		return
	}
	compare(t, registrytest.Created(t), got)
}

// TestManagedOnServer creates the samples on an API server, which keeps their field managers.
func TestManagedOnServer(t *testing.T) {
	t.Parallel()
	got := registrytest.CreateManaged(t, serverClient(t), plane.Namespace(t))
	if record(t, registrytest.ManagedFile, got) {
		return
	}
	compare(t, registrytest.CreatedManaged(t), got)
}

// compare fails the test for answers of an API server that are not as recorded.
func compare[T any](t *testing.T, recorded, got map[string]T) {
	t.Helper()
	if diff := cmp.Diff(recorded, got); diff != "" {
		t.Errorf("the answers differ, want those recorded, run again with -update (-recorded +real):\n%s", diff)
	}
}

func serverClient(t testing.TB) client.Client {
	t.Helper()
	config := plane.Config(t)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
