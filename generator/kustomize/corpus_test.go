package kustomize_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// example is a kustomization of the corpus. Its folder is app, next to its bases, or the whole folder.
type example struct {
	name, app string
	bases     []string
}

func corpus(t testing.TB) []example {
	t.Helper()
	entries, err := os.ReadDir("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	var examples []example
	for _, entry := range entries {
		e := example{name: entry.Name(), app: entry.Name()}
		inner, err := os.ReadDir(filepath.Join("testdata/corpus", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(inner, func(i os.DirEntry) bool { return i.Name() == "app" }) {
			e.app = entry.Name() + "/app"
			for _, folder := range inner {
				if folder.Name() != "app" {
					e.bases = append(e.bases, "../"+folder.Name())
				}
			}
		}
		examples = append(examples, e)
	}
	if len(examples) < 20 {
		t.Fatalf("the corpus has %d kustomizations, want at least 20", len(examples))
	}
	return examples
}

// reference serializes the builds of krusty in tests, and resets what one leaves to the next.
var reference sync.Mutex

// byKrusty is what kustomize itself builds from the folder on the disk.
func byKrusty(t testing.TB, dir string) []map[string]any {
	t.Helper()
	reference.Lock()
	defer reference.Unlock()
	openapi.ResetOpenAPI()
	defer openapi.ResetOpenAPI()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := utiljson.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func contentsOf(objects []client.Object) []map[string]any {
	var all []map[string]any
	for _, object := range objects {
		all = append(all, object.(*unstructured.Unstructured).Object)
	}
	return all
}

// generate builds with a context and without parameters.
func generate(made generator.Generator) ([]client.Object, error) {
	return made.Generate(context.Background(), "default", "app", generator.UnstructurableMap{})
}

// TestCorpus: what is built is what kustomize itself builds, from a file system and from the disk, also the second time.
func TestCorpus(t *testing.T) {
	for _, e := range corpus(t) {
		t.Run(e.name, func(t *testing.T) {
			want := byKrusty(t, filepath.Join("testdata/corpus", e.app))
			if len(want) == 0 {
				t.Fatal("kustomize builds nothing, want some objects")
			}
			options := kustomize.Options{Bases: e.bases}
			embedded, err := kustomize.NewGenerator(os.DirFS("testdata/corpus"), e.app, options)
			if err != nil {
				t.Fatal(err)
			}
			disk, err := kustomize.NewGenerator(nil, "testdata/corpus/"+e.app, options)
			if err != nil {
				t.Fatal(err)
			}
			for _, made := range []generator.Generator{embedded, disk, embedded} {
				got, err := generate(made)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, contentsOf(got)); diff != "" {
					t.Errorf("the objects differ, want what kustomize builds (-kustomize +ours):\n%s", diff)
				}
				for _, object := range got {
					object.SetName("changed by the caller")
				}
			}
		})
	}
}

func krustyError(dir string) error {
	reference.Lock()
	defer reference.Unlock()
	_, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	return err
}
