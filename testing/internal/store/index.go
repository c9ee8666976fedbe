package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexes are the fields that a cache has indexed.
type indexes struct {
	mu     *sync.RWMutex
	byKind map[schema.GroupKind]map[string]client.IndexerFunc
}

func newIndexes(given map[schema.GroupKind]map[string]client.IndexerFunc) indexes {
	own := indexes{mu: &sync.RWMutex{}, byKind: map[schema.GroupKind]map[string]client.IndexerFunc{}}
	for kind, fields := range given {
		own.byKind[kind] = maps.Clone(fields)
	}
	return own
}

// find returns the index of a field, nil if there is none.
func (i indexes) find(kind schema.GroupKind, field string) client.IndexerFunc {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byKind[kind][field]
}

// AddIndex adds an index of a field to those of the options.
func (c *Client) AddIndex(obj runtime.Object, field string, extract client.IndexerFunc) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	c.indexes.mu.Lock()
	defer c.indexes.mu.Unlock()
	byField := c.indexes.byKind[gvk.GroupKind()]
	if byField[field] != nil {
		return fmt.Errorf("the field %s of %s is indexed already", field, gvk.Kind)
	}
	if byField == nil {
		byField = map[string]client.IndexerFunc{}
		c.indexes.byKind[gvk.GroupKind()] = byField
	}
	byField[field] = extract
	return nil
}

// indexed reports whether a selector selects by indexed fields, and by no others.
func (c *Client) indexed(kind schema.GroupKind, selector fields.Selector) bool {
	if selector == nil || selector.Empty() {
		return false
	}
	return !slices.ContainsFunc(selector.Requirements(), func(requirement fields.Requirement) bool {
		return c.indexes.find(kind, requirement.Field) == nil
	})
}

var errInexact = errors.New("non-exact field matches are not supported by the cache")

// indexSelector returns what a cache selects by fields: it knows its indexes alone, and what is equal.
func (c *Client) indexSelector(
	r *resource, selector fields.Selector, newItem func() client.Object,
) (func(*record) bool, error) {
	if selector == nil {
		return everything, nil
	}
	requirements := selector.Requirements()
	if len(requirements) == 0 {
		return nil, errInexact
	}
	indexes := make([]client.IndexerFunc, len(requirements))
	for i, requirement := range requirements {
		if requirement.Operator == selection.NotEquals {
			return nil, errInexact
		}
		indexes[i] = c.indexes.find(r.gvk.GroupKind(), requirement.Field)
	}
	for i, requirement := range requirements {
		if indexes[i] == nil {
			//lint:ignore ST1005 it is the text of client-go
			return nil, fmt.Errorf("Index with name field:%s does not exist", requirement.Field)
		}
	}
	return func(found *record) bool {
		item := newItem()
		if err := found.copyTo(item, r.gvk.GroupVersion()); err != nil {
			return false
		}
		item.GetObjectKind().SetGroupVersionKind(r.gvk)
		for i, requirement := range requirements {
			if !slices.Contains(indexes[i](item), requirement.Value) {
				return false
			}
		}
		return true
	}, nil
}
