// Package generate draws custom resources, and edits of them, from the schema of a CustomResourceDefinition. It is for
// tests that explore what an operator does with whatever a user may write.
//
// A drawn resource is valid: the rules that an API server has for custom resources decide, also those of the Common
// Expression Language. The drawing is made so that few of the tries are refused.
package generate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// Generator draws resources of one version of a definition. It never changes, so goroutines may share it.
type Generator struct {
	kind     schema.GroupVersionKind
	scope    registry.Scope
	strategy registry.Strategy
	root     *node
}

// New compiles the schema of a served version of a definition. The error names what it cannot draw from by the path of
// the field, such as a pattern without words of the allowed length. Give a hint for such a field.
func New(definition *apiextensionsv1.CustomResourceDefinition, version string, hints Hints) (*Generator, error) {
	if err := validate(definition); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", definition.Name, err)
	}
	defined, err := registry.FromDefinition(definition)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(defined.Versions, func(v registry.Version) bool { return v.Name == version })
	if at < 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %s: version %q is not served", definition.Name, version)
	}
	g := &Generator{
		kind: defined.Kind.WithVersion(version), scope: defined.Scope, strategy: defined.Versions[at].Strategy,
	}
	if g.root, err = compile(definition, version, hints); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", definition.Name, version, err)
	}
	return g, nil
}

// validate returns what an API server finds wrong with a definition that is created.
func validate(definition *apiextensionsv1.CustomResourceDefinition) error {
	complete := definition.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(complete)
	var internal apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		complete, &internal, nil)
	if err != nil {
		return err
	}
	internal.Status.StoredVersions = nil
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = append(internal.Status.StoredVersions, version.Name)
		}
	}
	return validation.ValidateCustomResourceDefinition(context.Background(), &internal).ToAggregate()
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
		if g.scope != registry.Cluster {
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
	sent := obj.DeepCopy()
	if old == nil {
		g.strategy.PrepareForCreate(sent)
		return sorted(g.strategy.Validate(sent))
	}
	stored := g.stored(old, old)
	keepServerMetadata(sent, stored)
	g.strategy.PrepareForUpdate(sent, stored, "")
	return sorted(g.strategy.ValidateUpdate(sent, stored, ""))
}

// sorted sorts errors, which are found in the order of maps.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}

// keepServerMetadata gives two states of a resource the metadata that an update does not change.
func keepServerMetadata(obj, old *unstructured.Unstructured) {
	old.SetResourceVersion(cmp.Or(old.GetResourceVersion(), "1"))
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetUID(old.GetUID())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}

// stored returns what an API server stores if it gets obj while it has old.
func (g *Generator) stored(obj, old *unstructured.Unstructured) *unstructured.Unstructured {
	completed := obj.DeepCopy()
	g.strategy.PrepareForUpdate(completed, old, "")
	return completed
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
	return equality.Semantic.DeepEqual(g.stored(a, b).Object, g.stored(b, b).Object)
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
