package testing

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Index is a field that the cache behind the client has indexed, as SetupWithManager does with a field indexer. Lists
// with [client.MatchingFields] select by it.
type Index struct {
	// Object is of the type whose objects are listed. Required.
	Object client.Object
	// Field is the name of the field. Required.
	Field string
	// Extract returns the values of an object. Required.
	Extract client.IndexerFunc
}

var errIndex = errors.New("an Index needs an Object, a Field and an Extract")

// checkIndexes returns what is wrong with the given indexes.
func (c *ExpectConfig) checkIndexes() error {
	for i, index := range c.GivenIndexes {
		if gotype.IsNil(index.Object) || index.Field == "" || index.Extract == nil {
			return fmt.Errorf("GivenIndexes[%d]: %w", i, errIndex)
		}
		if _, err := objects.KindOf(index.Object, c.Scheme); err != nil {
			return fmt.Errorf("GivenIndexes[%d]: %w", i, err)
		}
	}
	return nil
}

// indexesOf returns indexes by kind and field. An object of an unknown kind has none.
func indexesOf(indexes []Index, scheme *runtime.Scheme) map[schema.GroupKind]map[string]client.IndexerFunc {
	byKind := map[schema.GroupKind]map[string]client.IndexerFunc{}
	for _, index := range indexes {
		kind, err := objects.KindOf(index.Object, scheme)
		if err != nil {
			continue
		}
		if byKind[kind.GroupKind()] == nil {
			byKind[kind.GroupKind()] = map[string]client.IndexerFunc{}
		}
		byKind[kind.GroupKind()][index.Field] = index.Extract
	}
	return byKind
}
