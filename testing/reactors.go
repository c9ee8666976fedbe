package testing

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// InduceFailureOpts narrows what [InduceFailure] lets fail. An empty member matches anything.
type InduceFailureOpts struct {
	// Error is what the call returns; nil for a default text.
	Error error
	// Namespace is that of the object.
	Namespace string
	// Name is that of the object.
	Name string
	// SubResource is that of the call.
	SubResource string
}

// InduceFailure returns a reaction that lets calls fail: those with the verb (get, list, create, update, patch, apply,
// delete, delete-collection) on objects of the kind; the kind of a list is that of the list type. Case does not matter. The
// call is recorded, and is not made. It panics if given more than one options.
func InduceFailure(verb, kind string, o ...InduceFailureOpts) ReactionFunc {
	var opts InduceFailureOpts
	switch len(o) {
	case 0:
	case 1:
		opts = o[0]
	default:
		panic(fmt.Errorf("expected zero or one InduceFailureOpts, got %d", len(o)))
	}
	err := opts.Error
	if err == nil {
		err = fmt.Errorf("inducing failure for %s %s", verb, kind)
	}
	return func(action Action) (bool, runtime.Object, error) {
		if !action.Matches(verb, kind) || !opts.match(action) {
			return false, nil, nil
		}
		return true, nil, err
	}
}

func (o InduceFailureOpts) match(action Action) bool {
	return (o.Namespace == "" || o.Namespace == action.GetNamespace()) &&
		(o.SubResource == "" || o.SubResource == action.GetSubresource()) &&
		(o.Name == "" || o.Name == nameOf(action))
}

// nameOf returns the name of the object that an action is about, empty if it is about none in particular.
func nameOf(action Action) string {
	switch a := action.(type) {
	case interface{ GetName() string }:
		return a.GetName()
	case interface{ GetObject() runtime.Object }:
		if obj, err := meta.Accessor(a.GetObject()); err == nil {
			return obj.GetName()
		}
	}
	return ""
}

// CalledAtMostTimes returns a reaction that lets calls with the verb on objects of the kind fail once there were more than
// maxCalls of them. It counts all calls it sees, also those of other test cases: make a new one for each case.
func CalledAtMostTimes(verb, kind string, maxCalls int) ReactionFunc {
	var calls atomic.Int64
	return func(action Action) (bool, runtime.Object, error) {
		if !action.Matches(verb, kind) {
			return false, nil, nil
		}
		if n := calls.Add(1); n > int64(maxCalls) {
			return true, nil, fmt.Errorf("%s %s called %d times, expected %d call(s)", verb, kind, n, maxCalls)
		}
		return false, nil, nil
	}
}
