package generate_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// checker decides with the strategy of the kind alone what is valid.
type checker struct {
	*testing.T
	registry.Strategy
}

func newChecker(t *testing.T, kind string) checker {
	defined, err := registry.FromDefinition(read(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return checker{t, defined.Versions[0].Strategy}
}

// create returns what is stored.
func (c checker) create(obj *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	if err := c.CheckFields(obj.Object); err != nil {
		c.Fatalf("%v\n%s", err, encode(obj))
	}
	stored := obj.DeepCopy()
	c.PrepareForCreate(stored)
	stored.SetResourceVersion("1")
	if errs := c.Validate(stored); len(errs) > 0 {
		c.Fatalf("%v\n%s", errs.ToAggregate(), encode(obj))
	}
	return stored
}

// update returns what is stored.
func (c checker) update(obj, old *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	if err := c.CheckFields(obj.Object); err != nil {
		c.Fatalf("%v\n%s", err, encode(obj))
	}
	stored := obj.DeepCopy()
	c.PrepareForUpdate(stored, old, "")
	if errs := c.ValidateUpdate(stored, old, ""); len(errs) > 0 {
		c.Fatalf("%v\n%s\nwas\n%s", errs.ToAggregate(), encode(obj), encode(old))
	}
	return stored
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
				seen[encode(stored)] = true
				edited := g.Edit(r, stored)
				if next := c.update(edited, stored); cmp.Equal(next.Object, stored.Object) {
					t.Fatalf("seed %d: the edit changes nothing: %s", seed, encode(edited))
				}
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
