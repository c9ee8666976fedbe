package memserver

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// The fake client registers unknown kinds of unstructured objects in its scheme, under its own lock. A test shares its
// scheme with the code under test, and often with tests that run in parallel. Both would race with the fake client. So
// each server works with a copy. A copy of the client-go scheme takes about a millisecond, so copies are used again.

// schemeCopy is a copy of a scheme.
type schemeCopy struct {
	*runtime.Scheme
	// size is the number of types that the original had, so that types added later are noticed.
	size int
	// pool has the copies of the same original that no server works with.
	pool *sync.Pool
}

// copies has a *sync.Pool of *schemeCopy for each original scheme.
var copies sync.Map

// acquire returns a copy that no other server works with until it is released.
func acquire(original *runtime.Scheme) *schemeCopy {
	size := len(original.AllKnownTypes())
	pool, _ := copies.LoadOrStore(original, &sync.Pool{})
	if c, ok := pool.(*sync.Pool).Get().(*schemeCopy); ok && c.size == size {
		return c
	}
	return &schemeCopy{Scheme: duplicate(original), pool: pool.(*sync.Pool), size: size}
}

// release makes the copy available to other servers, unless kinds were added that the original does not have: a test
// must not affect the next.
func (c *schemeCopy) release() {
	if len(c.AllKnownTypes()) == c.size {
		c.pool.Put(c)
	}
}

// duplicate returns a scheme with the types of original. Conversion and defaulting functions, which a store does not
// need, are not copied.
func duplicate(original *runtime.Scheme) *runtime.Scheme {
	c := runtime.NewScheme()
	for kind, goType := range original.AllKnownTypes() {
		if obj, ok := reflect.New(goType).Interface().(runtime.Object); ok {
			c.AddKnownTypeWithName(kind, obj)
		}
	}
	return c
}
