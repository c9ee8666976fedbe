package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// choosyGenerator refuses to generate as long as refused is set, and notes the revisions that it sees.
type choosyGenerator struct {
	generator.Generator
	refused       bool
	deterministic bool
	seen          []int64
}

func (g *choosyGenerator) Deterministic() bool { return g.deterministic }

func (g *choosyGenerator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	revision, err := generator.ComponentRevisionFromContext(ctx)
	if g.seen = append(g.seen, revision); err != nil || g.refused {
		return nil, errors.Join(err, errRefused)
	}
	return g.Generator.Generate(ctx, namespace, name, parameters)
}

var errRefused = errors.New("the values are refused")

// What the generator refuses is no revision: the generator sees the same number when the values are mended. Values that
// are back at what is rolled out are none either.
func TestRefusedValuesAreNoRevision(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		t.Run(fmt.Sprint("deterministic ", deterministic), func(t *testing.T) {
			house, _, _ := newHouse()
			generator := &choosyGenerator{Generator: resources.AssemblyGenerator(), deterministic: deterministic}
			node := assembling()
			node.Generator = generator
			o := newOperated(t, node, house, nil)
			for _, step := range []struct {
				name     string
				values   string
				refused  bool
				sees     int64
				revision int64
			}{
				{"the first values are refused", "a", true, 1, 0},
				{"others are refused", "b", true, 1, 0},
				{"they are installed", "c", false, 1, 1},
				{"an upgrade is refused", "d", true, 2, 1},
				{"the values are back", "c", false, 1, 1},
				{"another upgrade is refused", "e", true, 2, 1},
				{"it is upgraded", "f", false, 2, 2},
				{"the first are installed again", "c", false, 3, 3},
			} {
				stored := &resources.Assembly{}
				stored.Name = house.Name
				o.change(t, stored, func() { stored.Annotations = map[string]string{componentPrefix + "/values": step.values} })
				generator.refused, generator.seen = step.refused, nil
				for range 3 {
					if _, err := o.reconcile(t, 0); step.refused != errors.Is(err, errRefused) {
						t.Fatalf("%s: the error is %v, want a refusal: %t", step.name, err, step.refused)
					}
				}
				others := slices.DeleteFunc(slices.Clone(generator.seen), func(revision int64) bool { return revision == step.sees })
				if status := o.house(t).Status; status.Revision != step.revision || len(others) > 0 {
					t.Errorf("%s: the revision is %d and the generator sees %v, want %d, and that revision alone",
						step.name, status.Revision, generator.seen, step.revision)
				}
			}
		})
	}
}

// The operator may die after objects were written and before the status is: the revision is the same then.
func TestRevisionAfterACrash(t *testing.T) {
	house, _, _ := newHouse()
	generator := &choosyGenerator{Generator: resources.AssemblyGenerator()}
	node := assembling()
	node.Generator = generator
	fails := false
	o := newOperated(t, node, house, nil, func(action rtesting.Action) (bool, runtime.Object, error) {
		if fails && action.GetSubresource() == "status" {
			return true, nil, errRefused
		}
		return false, nil, nil
	})
	o.untilIdle(t)
	stored := &resources.Assembly{}
	stored.Name = house.Name
	o.change(t, stored, func() { stored.Annotations = map[string]string{componentPrefix + "/values": "b"} })
	generator.seen, fails = nil, true
	if _, err := o.reconcile(t, 0); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	fails = false
	o.untilIdle(t)
	others := slices.DeleteFunc(slices.Clone(generator.seen), func(revision int64) bool { return revision == 2 })
	if revision := o.house(t).Status.Revision; revision != 2 || len(others) > 0 {
		t.Errorf("the revision is %d and the generator sees %v, want 2, and that revision alone", revision,
			generator.seen)
	}
}

// contentGenerator makes objects from content that comes with the operator.
type contentGenerator struct {
	choosyGenerator
	content string
}

func (g *contentGenerator) ContentDigest(context.Context) (string, error) { return g.content, nil }

// Another content of the generator is another revision, once. A component that was rolled out before content was
// recorded takes the content that is there without another revision.
func TestContentOfTheGeneratorIsARevision(t *testing.T) {
	house, _, _ := newHouse()
	made := &contentGenerator{choosyGenerator: choosyGenerator{Generator: resources.AssemblyGenerator()}}
	node := assembling()
	node.Generator = made
	o := newOperated(t, node, house, nil)
	digests := map[string]string{}
	for _, step := range []struct {
		name, content, values string
		revision              int64
		// same is the step whose digest it has.
		same string
	}{
		{"nothing is known of the content", "", "a", 1, ""},
		{"the content is known", "one", "a", 1, "nothing is known of the content"},
		{"it stays", "one", "a", 1, "nothing is known of the content"},
		{"it is another one", "two", "a", 2, ""},
		{"it stays again", "two", "a", 2, "it is another one"},
		{"the values change", "two", "b", 3, ""},
		{"both change", "three", "c", 4, ""},
		{"it is the former one", "two", "c", 5, ""},
	} {
		made.content = step.content
		stored := &resources.Assembly{}
		stored.Name = house.Name
		o.change(t, stored, func() { stored.Annotations = map[string]string{componentPrefix + "/values": step.values} })
		o.untilIdle(t)
		status := o.house(t).Status
		if status.Revision != step.revision {
			t.Errorf("%s: the revision is %d, want %d", step.name, status.Revision, step.revision)
		}
		if former := digests[step.same]; step.same != "" && status.ProcessingDigest != former {
			t.Errorf("%s: the digest is %s, want %s as before", step.name, status.ProcessingDigest, former)
		}
		digests[step.name] = status.ProcessingDigest
	}
}
