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
func (i indexes) indexed(kind schema.GroupKind, selector fields.Selector) bool {
	if selector == nil || selector.Empty() {
		return false
	}
	return !slices.ContainsFunc(selector.Requirements(), func(requirement fields.Requirement) bool {
		return i.find(kind, requirement.Field) == nil
	})
}

var errInexact = errors.New("non-exact field matches are not supported by the cache")
