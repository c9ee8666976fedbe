package memserver

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// The fake client registers unknown kinds of unstructured objects in its scheme, under a lock of its own. A test shares
// its scheme with the code under test, and often with tests that run in parallel, which would race. So each server
// works with a copy. Making one takes about a millisecond for the client-go scheme, so copies are used again.

// schemeCopy is a copy of a scheme.
type schemeCopy struct {
	*runtime.Scheme
	// of is the original, size the number of types that it had, so that types added later are noticed.
	of   *runtime.Scheme
	size int
}

// free holds the copies that no server works with, by original.
var free struct {
	sync.Mutex
	copies map[*runtime.Scheme][]schemeCopy
}

// acquire returns a copy that no other server works with until it is released.
func acquire(original *runtime.Scheme) schemeCopy {
	size := len(original.AllKnownTypes())
	free.Lock()
	defer free.Unlock()
	copies := free.copies[original]
	for len(copies) > 0 {
		last := copies[len(copies)-1]
		copies = copies[:len(copies)-1]
		free.copies[original] = copies
		if last.size == size {
			return last
		}
	}
	return schemeCopy{Scheme: duplicate(original), of: original, size: size}
}

// release makes the copy available to other servers, unless kinds were added that the original does not have: a test
// must not affect the next.
func (c schemeCopy) release() {
	if len(c.AllKnownTypes()) != c.size {
		return
	}
	free.Lock()
	defer free.Unlock()
	if free.copies == nil {
		free.copies = map[*runtime.Scheme][]schemeCopy{}
	}
	free.copies[c.of] = append(free.copies[c.of], c)
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
