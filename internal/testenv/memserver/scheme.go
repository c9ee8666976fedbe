package memserver

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// The fake client registers kinds it does not know, of unstructured objects, in its scheme, under a lock of its own. The
// scheme of a test is shared with everything else in it, and often with tests that run in parallel: they would race. So
// each server works with a copy. Making one takes about a millisecond for the client-go scheme; they are used again.

// schemeCopy is a copy of a scheme.
type schemeCopy struct {
	*runtime.Scheme
	// of and size are the original and how many types it had, to notice types that came later.
	of   *runtime.Scheme
	size int
}

// idle holds the copies that no server works with, by original.
var idle struct {
	sync.Mutex
	copies map[*runtime.Scheme][]schemeCopy
}

// borrow returns a copy that nobody else works with until it is given back.
func borrow(original *runtime.Scheme) schemeCopy {
	size := len(original.AllKnownTypes())
	idle.Lock()
	defer idle.Unlock()
	copies := idle.copies[original]
	for len(copies) > 0 {
		last := copies[len(copies)-1]
		copies = copies[:len(copies)-1]
		idle.copies[original] = copies
		if last.size == size {
			return last
		}
	}
	return schemeCopy{Scheme: duplicate(original), of: original, size: size}
}

// giveBack lets others borrow the copy, unless it has learned kinds that the original does not know: what one test meets
// must not show in the next.
func (c schemeCopy) giveBack() {
	if len(c.AllKnownTypes()) != c.size {
		return
	}
	idle.Lock()
	defer idle.Unlock()
	if idle.copies == nil {
		idle.copies = map[*runtime.Scheme][]schemeCopy{}
	}
	idle.copies[c.of] = append(idle.copies[c.of], c)
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
