// Package generate draws custom resources, and edits of them, from the schema of a CustomResourceDefinition. It is for
// tests that explore what an operator does with whatever a user may write.
//
// A drawn resource is valid: the rules that an API server has for custom resources decide, also those of the Common
// Expression Language. The drawing is made so that few of the tries are refused.
package generate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Generator draws resources of one version of a definition. It never changes, so goroutines may share it.
type Generator struct {
	kind  schema.GroupVersionKind
	judge *judge
	root  *node
}

// New compiles the schema of a served version of a definition. The error names what it cannot draw from by the path of
// the field, such as a pattern without words of the allowed length. Give a hint for such a field.
func New(definition *apiextensionsv1.CustomResourceDefinition, version string, hints Hints) (*Generator, error) {
	judge, err := newJudge(definition, version)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", definition.Name, err)
	}
	g := &Generator{
		kind: schema.GroupVersionKind{
			Group: definition.Spec.Group, Version: version, Kind: definition.Spec.Names.Kind,
		},
		judge: judge,
	}
	if g.root, err = compile(definition, version, hints); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", definition.Name, version, err)
	}
	return g, nil
}

// How often something is tried before it is given up. To mend an edit takes fewer tries: rules that refuse it may be
// about what must not change.
const (
	maxTries     = 200
	maxDraws     = 50
	maxMends     = 20
	maxEdits     = 16
	maxEditMends = 8
)

// Resource draws a resource as a user may create it: without a status, and some of the fields that have defaults are
// left out. The same source gives the same resource. The namespace does not count if the resources are in none.
//
// The error names the rule that refused most of the tries. It happens if rules of the definition are hardly ever met
// by chance, or not by the name at all. Give hints then.
func (g *Generator) Resource(r *rand.Rand, namespace, name string) (*unstructured.Unstructured, error) {
	refused := refusals{}
	for range maxDraws {
		obj := &unstructured.Unstructured{Object: newDrawer(r).content(g.root)}
		obj.SetGroupVersionKind(g.kind)
		if g.judge.strategy.NamespaceScoped() {
			obj.SetNamespace(namespace)
		}
		obj.SetName(name)
		if r.IntN(3) == 0 {
			editMetadata(r, obj)
		}
		errs := g.mend(r, obj, nil, maxMends)
		if len(errs) == 0 {
			return obj, nil
		}
		refused.add(errs)
	}
	return nil, fmt.Errorf("%s %s: no valid resource in %d tries; refused most often by %s",
		g.kind.Kind, name, maxDraws, refused.most())
}

// Check returns what an API server answers to the creation of a resource, or to its update if old is not nil. It is nil
// if the resource is accepted. Both stay as they are. The metadata that only a server sets need not be there.
func (g *Generator) Check(obj, old *unstructured.Unstructured) error {
	return g.check(obj, old).ToAggregate()
}

func (g *Generator) check(obj, old *unstructured.Unstructured) field.ErrorList {
	if old == nil {
		return g.judge.refusesNew(obj)
	}
	return g.judge.refuses(obj, old)
}

// mend changes what errors name until there are none, and returns those that are left after a number of tries.
func (g *Generator) mend(r *rand.Rand, obj, old *unstructured.Unstructured, tries int) field.ErrorList {
	errs := g.check(obj, old)
	for range tries {
		if len(errs) == 0 {
			return nil
		}
		tried := obj.DeepCopy()
		if !newDrawer(r).edit(g.root, tried.Object, errs[r.IntN(len(errs))].Field) {
			continue
		}
		if left := g.check(tried, old); len(left) <= len(errs) {
			obj.Object, errs = tried.Object, left
		}
	}
	return errs
}

// same reports whether an API server stores the same for both.
func (g *Generator) same(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(g.judge.updated(a, b).Object, g.judge.updated(b, b).Object)
}

// refusals counts errors by the rule.
type refusals map[string]int

func (f refusals) add(errs field.ErrorList) {
	for _, err := range errs {
		rule := fmt.Sprintf("%s: %s", err.Type, err.Detail)
		if err.Field != "" && err.Field != "<nil>" {
			rule = err.Field + ": " + rule
		}
		f[rule]++
	}
}

// most returns the rule that was broken most often.
func (f refusals) most() string {
	rules := slices.Sorted(maps.Keys(f))
	if len(rules) == 0 {
		return "nothing"
	}
	return slices.MaxFunc(rules, func(a, b string) int { return f[a] - f[b] })
}
