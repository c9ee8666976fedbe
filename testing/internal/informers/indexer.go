package informers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/testing/internal/random"
)

// indexer is a cache whose lists have orders that are drawn.
type indexer struct {
	cache.Indexer
	informer *informer
}

// List implements [cache.Store].
func (x indexer) List() []any { return x.order(x.Indexer.List()) }

// Index implements [cache.Indexer].
func (x indexer) Index(name string, obj any) ([]any, error) {
	objs, err := x.Indexer.Index(name, obj)
	return x.order(objs), err
}

// ByIndex implements [cache.Indexer].
func (x indexer) ByIndex(name, value string) ([]any, error) {
	objs, err := x.Indexer.ByIndex(name, value)
	return x.order(objs), err
}

// order orders the objects of a list. The order is another one in each moment: with a number of the list instead, it
// would depend on which of two goroutines lists first.
func (x indexer) order(objs []any) []any {
	if len(objs) < 2 {
		return objs
	}
	slices.SortFunc(objs, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	random.Source(x.informer.seed, "list", x.informer.name, now).
		Shuffle(len(objs), func(i, j int) { objs[i], objs[j] = objs[j], objs[i] })
	return objs
}

// key returns the name of an object with its namespace. All objects in a cache have one.
func key(obj any) string {
	key, _ := cache.MetaNamespaceKeyFunc(obj)
	return key
}
