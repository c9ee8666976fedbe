package store

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexSelector returns what a cache selects by fields: it knows its indexes alone, and what is equal.
func (c *memoryClient) indexSelector(
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
