package testing

import (
	"cmp"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// expectation is how one kind of call is compared: E is what a table holds, A what is recorded.
type expectation[E, A any] struct {
	// field is the field of a test case that holds the expected values.
	field string
	// kind is the word for one call.
	kind string
	// verb formats a value for a message; empty is %#v.
	verb string
	// found returns a recorded call as a table would hold it.
	found func(A) E
	// observed is found with the members that are compared only because the expected value sets them; nil is found.
	observed func(E, A) E
	// diff compares.
	diff func(expected, actual E) string
	// pastable returns what of a value belongs in a table; nil is all.
	pastable func(E) any
}

func (e expectation[E, A]) assert(c *ExpectConfig, t *testing.T, expected []E, actual []A) {
	verb := cmp.Or(e.verb, "%#v")
	for i, want := range expected {
		if i >= len(actual) {
			c.errorf(t, "%s[%d] not observed%s: "+verb, e.field, i, c.suffix(), want)
			continue
		}
		if diff := e.diff(want, e.observe(want, actual[i])); diff != "" {
			c.errorf(t, "%s[%d] differs%s %s:\n%s", e.field, i, c.suffix(), legend(), ColorizeDiff(diff))
		}
	}
	for _, extra := range actual[min(len(expected), len(actual)):] {
		got := e.found(extra)
		c.errorf(t, "Unexpected %s observed%s: "+verb+"\n%s", e.kind, c.suffix(), got, e.hint(got))
	}
}

func (e expectation[E, A]) observe(want E, call A) E {
	if e.observed != nil {
		return e.observed(want, call)
	}
	return e.found(call)
}

// hint says how to expect a call.
func (e expectation[E, A]) hint(got E) string {
	value := any(got)
	if e.pastable != nil {
		value = e.pastable(got)
	}
	return fmt.Sprintf("To expect it, add to %s:\n%s,", e.field, literal.Of(value))
}

// sentPart returns what of an object that is created or updated an expectation compares by default.
func sentPart(obj client.Object, scheme *runtime.Scheme) client.Object {
	obj = realObject(obj)
	if kept, ok := obj.(*Inventory); ok {
		return kept.pastable()
	}
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetManagedFields(nil)
	if _, isUnstructured := obj.(runtime.Unstructured); isUnstructured {
		return obj
	}
	if _, _, err := scheme.ObjectKinds(obj); err == nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}
