package testing

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexedClient is the client of a manager: it finds objects by the indexes of the cache.
type indexedClient struct {
	*recorder
	cache *setupCache
}

var _ TestClient = (*indexedClient)(nil)

// List implements [client.Client].
func (c *indexedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind, err := kindOf(list, c.Scheme())
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	selector := options.FieldSelector
	if selector == nil || !c.isIndexed(kind, selector) {
		return c.recorder.List(ctx, list, opts...)
	}
	options.FieldSelector = nil
	if err := c.recorder.List(ctx, list, options); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(item runtime.Object) bool { return !c.selects(selector, item) }))
}

// isIndexed tells whether there is an index for all that the selector asks of the kind. If not, the client behind has the
// error to say so.
func (c *indexedClient) isIndexed(kind schema.GroupVersionKind, selector fields.Selector) bool {
	indexes := c.cache.indexed()
	for _, required := range selector.Requirements() {
		known := func(x fieldIndex) bool { return x.of.kind == kind && x.field == required.Field }
		if !slices.ContainsFunc(indexes, known) {
			return false
		}
	}
	return true
}

// selects tells whether an item has the values that the selector asks for.
func (c *indexedClient) selects(selector fields.Selector, item runtime.Object) bool {
	obj, ok := item.(client.Object)
	if !ok {
		return false
	}
	w, err := watchedTypeOf(obj, c.Scheme())
	if err != nil {
		return false
	}
	indexes := c.cache.indexed()
	for _, required := range selector.Requirements() {
		has := func(x fieldIndex) bool {
			return x.of == w && x.field == required.Field && slices.Contains(x.extract(obj), required.Value)
		}
		if !slices.ContainsFunc(indexes, has) {
			return false
		}
	}
	return true
}

// setupMapper maps the given resources, the kinds of the scheme, and as a guess any other kind.
type setupMapper struct {
	meta.RESTMapper
}

func newSetupMapper(scheme *runtime.Scheme, given meta.RESTMapper) meta.RESTMapper {
	return setupMapper{meta.FirstHitRESTMapper{
		MultiRESTMapper: meta.MultiRESTMapper{given, testrestmapper.TestOnlyStaticRESTMapper(scheme)},
	}}
}

// RESTMapping implements [meta.RESTMapper].
func (m setupMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil || len(versions) == 0 {
		return mapping, err
	}
	guess := meta.NewDefaultRESTMapper(nil)
	guess.Add(kind.WithVersion(versions[0]), meta.RESTScopeNamespace)
	return guess.RESTMapping(kind, versions...)
}
