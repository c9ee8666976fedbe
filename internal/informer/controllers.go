package informer

import (
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// weakList is a list of values that others hold. The zero value is ready for use, also concurrently.
type weakList[T any] struct {
	mu  sync.Mutex
	all []weak.Pointer[T]
}

// findOr returns the first value for which is returns true, or else adds what create returns, unless create is nil.
func (l *weakList[T]) findOr(is func(*T) bool, create func() *T) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if value := one.Value(); value != nil && is(value) {
			return value
		}
	}
	if create == nil {
		return nil
	}
	if len(l.all) == cap(l.all) {
		l.all = slices.DeleteFunc(l.all, func(one weak.Pointer[T]) bool { return one.Value() == nil })
	}
	created := create()
	l.all = append(l.all, weak.Make(created))
	return created
}

// controllers are the controllers of the program that were set up. Their managers hold them.
var controllers weakList[Tracked]

func register(w *Tracked) {
	controllers.findOr(func(known *Tracked) bool { return known == w }, func() *Tracked { return w })
}

// anyKeeps reports whether a controller needs the informers of a kind in the cache of a cluster.
func anyKeeps(in cluster.Cluster, kind schema.GroupVersionKind) bool {
	return controllers.findOr(func(w *Tracked) bool { return w.keeps(in, kind) }, nil) != nil
}
