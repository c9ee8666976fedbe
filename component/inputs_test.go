package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// reportingGenerator reports an input besides the resource.
type reportingGenerator struct {
	*countingGenerator
	input   string
	err     error
	reports int
	// revision is the one that the context has.
	revision int64
}

func (g *reportingGenerator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	g.reports++
	g.revision, _ = generator.ComponentRevisionFromContext(ctx)
	if namespace != "default" || name != "house" {
		return "", errors.New("called for " + namespace + "/" + name)
	}
	return g.input, g.err
}

// A generator that reports inputs is asked in each request, and called when the answer is another one. That starts no revision.
func TestGeneratorReportsInputs(t *testing.T) {
	for name, wrap := range map[string]func(generator.Generator) generator.Generator{
		"by itself": func(g generator.Generator) generator.Generator { return g },
		"wrapped": func(g generator.Generator) generator.Generator {
			return generator.NewGenerator(g).WithParameterTransformer(generator.Defaults(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			house, _, _ := newHouse()
			generator := &reportingGenerator{
				countingGenerator: &countingGenerator{Generator: resources.AssemblyGenerator(), deterministic: true}, input: "1",
			}
			node := assembling()
			node.Generator = wrap(generator)
			o := newOperated(t, node, house, nil)
			o.untilIdle(t)
			revision := o.house(t).Status.Revision
			if revision != 1 || generator.revision != 1 {
				t.Errorf("the revision is %d, and %d in the context, want 1 in both", revision, generator.revision)
			}
			for _, step := range []struct {
				name, input string
				err         error
				calls       int
			}{
				{"nothing changes", "1", nil, 0},
				{"the input changes", "2", nil, 1},
				{"nothing changes again", "2", nil, 0},
				{"it fails", "3", errors.New("unreachable"), 0},
				{"it fails again", "3", errors.New("unreachable"), 0},
				{"it works again, as before", "2", nil, 0},
				{"the input changes back", "1", nil, 1},
			} {
				generator.calls, generator.reports = 0, 0
				generator.input, generator.err = step.input, step.err
				before := o.house(t)
				_, err := o.reconcile(t, 0)
				if generator.calls != step.calls || generator.reports != 1 || !errors.Is(err, step.err) {
					t.Errorf("%s: there are %d calls, %d reports and the error %v, want %d, 1 and %v", step.name,
						generator.calls, generator.reports, err, step.calls, step.err)
				}
				after := o.house(t)
				if after.Status.Revision != revision || len(after.Status.Inventory) != len(before.Status.Inventory) {
					t.Errorf("%s: the revision is %d and the inventory %v, want %d and %d records", step.name,
						after.Status.Revision, after.Status.Inventory, revision, len(before.Status.Inventory))
				}
				if step.err == nil {
					continue
				}
				condition := after.Status.Conditions[0]
				if condition.Reason != "Error" || condition.Message != "Unable to generate the objects: unreachable" {
					t.Errorf("%s: the condition says %s: %s, want that the generator is unreachable", step.name,
						condition.Reason, condition.Message)
				}
				for _, write := range o.writes {
					if !strings.Contains(write, "Assembly/status") {
						t.Errorf("%s: there is the write %s, want those of the status alone", step.name, write)
					}
				}
			}
		})
	}
}
