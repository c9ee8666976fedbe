package generate_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// checker has an API server decide what is valid, in a world of its own.
type checker struct {
	*testing.T
	client.Client
}

func newChecker(t *testing.T, kind string) checker {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := store.New(store.Options{Scheme: scheme})
	if err := s.Give(read(t, kind)); err != nil {
		t.Fatal(err)
	}
	return checker{t, s.Client(store.ClientOptions{})}
}

// create returns what is stored.
func (c checker) create(obj *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	stored := obj.DeepCopy()
	if err := c.Create(c.Context(), stored, client.FieldValidation("Strict")); err != nil {
		c.Fatalf("%v\n%s", err, encode(obj))
	}
	return stored
}

// update returns what is stored.
func (c checker) update(obj, old *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	stored := obj.DeepCopy()
	if err := c.Update(c.Context(), stored, client.FieldValidation("Strict")); err != nil {
		c.Fatalf("%v\n%s\nwas\n%s", err, encode(obj), encode(old))
	}
	return stored
}

// delete makes room for the next resource of the name.
func (c checker) delete(obj *unstructured.Unstructured) {
	c.Helper()
	if err := c.Delete(c.Context(), obj); err != nil {
		c.Fatal(err)
	}
}

func encode(value any) string {
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

// TestValid has a thousand resources of each kind, and a thousand edits.
func TestValid(t *testing.T) {
	for kind := range definitions {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g, c := generator(t, kind), newChecker(t, kind)
			seen := map[string]bool{}
			for seed := range uint64(1000) {
				r := source(seed)
				obj := draw(t, g, r)
				stored := c.create(obj)
				seen[encode(stored.Object["spec"])] = true
				edited := g.Edit(r, stored)
				next := c.update(edited, stored)
				if next.GetResourceVersion() == stored.GetResourceVersion() {
					t.Fatalf("seed %d: the edit changes nothing: %s", seed, encode(edited))
				}
				c.delete(next)
			}
			if len(seen) < 300 {
				t.Errorf("1000 seeds give %d resources", len(seen))
			}
		})
	}
}

func TestSameSource(t *testing.T) {
	t.Parallel()
	for kind := range definitions {
		g, again := generator(t, kind), generator(t, kind)
		for seed := range uint64(20) {
			r, s := source(seed), source(seed)
			a, b := draw(t, g, r), draw(t, again, s)
			for range 10 {
				if diff := cmp.Diff(a.Object, b.Object); diff != "" {
					t.Fatalf("%s, seed %d: %s", kind, seed, diff)
				}
				a, b = g.Edit(r, a), again.Edit(s, b)
			}
		}
	}
}

// TestShared has goroutines draw with one generator.
func TestShared(t *testing.T) {
	t.Parallel()
	g := generator(t, "Keyword")
	drawn := make([]string, 4)
	var wait sync.WaitGroup
	for i := range drawn {
		wait.Go(func() {
			r := source(1)
			obj, err := g.Resource(r, "default", "one")
			if err != nil {
				t.Error(err)
				return
			}
			drawn[i] = encode(g.Edit(r, obj))
		})
	}
	wait.Wait()
	if slices.Sort(drawn); drawn[0] != drawn[len(drawn)-1] {
		t.Errorf("%s is not %s", drawn[0], drawn[len(drawn)-1])
	}
}
