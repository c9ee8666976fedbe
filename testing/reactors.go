package testing

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// InduceFailureOpts restricts the calls that [InduceFailure] makes fail. An empty field matches anything.
type InduceFailureOpts struct {
	// Error is the error of the call; nil for a default text.
	Error error
	// Namespace is the namespace of the object.
	Namespace string
	// Name is the name of the object.
	Name string
	// SubResource is the subresource of the call.
	SubResource string
}

// InduceFailure returns a reaction that makes calls fail that have the verb (get, list, create, update, patch, apply,
// delete, delete-collection) and are for objects of the kind. The kind of a list call is the kind of the list, such as
// ConfigMapList. Case does not matter. The call is recorded, and is not made. It panics if given more than one options.
func InduceFailure(verb, kind string, o ...InduceFailureOpts) ReactionFunc {
	var opts InduceFailureOpts
	if len(o) > 1 {
		panic(fmt.Errorf("expected zero or one InduceFailureOpts, got %d", len(o)))
	}
	if len(o) == 1 {
		opts = o[0]
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
		(o.Name == "" || o.Name == recording.NameOf(action))
}

// CalledAtMostTimes returns a reaction that makes calls with the verb on objects of the kind fail after maxCalls of
// them. It counts calls of all test cases that use it: make a new one for each case.
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

// AssignUIDs returns a reaction that gives a UID to each object that is created, as an API server does. The UID is made
// of kind, namespace and name, with a number if the object is created again. Make a new one for each case.
func AssignUIDs() ReactionFunc {
	given := map[types.UID]int{}
	var lock sync.Mutex
	return func(action Action) (bool, runtime.Object, error) {
		create, ok := action.(CreateAction)
		if !ok || action.GetVerb() != "create" || action.GetSubresource() != "" || recording.OptionsOf(action).DryRun {
			return false, nil, nil
		}
		obj, err := meta.Accessor(create.GetObject())
		if err != nil || obj.GetUID() != "" {
			return false, nil, nil
		}
		lock.Lock()
		defer lock.Unlock()
		uid := uidOf(action.GetResource().Resource, obj)
		given[uid]++
		if n := given[uid]; n > 1 {
			uid += types.UID(fmt.Sprintf(".%d", n))
		}
		obj.SetUID(uid)
		return false, nil, nil
	}
}

// uidOf makes a UID that may be the value of a label.
func uidOf(kind string, obj metav1.Object) types.UID {
	parts := []string{kind, obj.GetNamespace(), obj.GetName()}
	return types.UID(strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "."))
}
