package testing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
)

// seededVersion is the resource version that the fake client gives to a given object that has none.
const seededVersion = "999"

// seededAt is the creation time of a given object that has none.
var seededAt = metav1.NewTime(time.UnixMilli(1000))

// realObject returns a copy of what obj stands for. Builders, fixtures and the like implement client.Object without being
// the object; their copy is.
func realObject(obj client.Object) client.Object {
	if real, ok := obj.DeepCopyObject().(client.Object); ok {
		return real
	}
	return obj
}

// realObjects returns what objs stand for. The result shares nothing with objs, which often belongs to several cases.
func realObjects(objs []client.Object) []client.Object {
	real := make([]client.Object, len(objs))
	for i, obj := range objs {
		real[i] = realObject(obj)
	}
	return real
}

var errOnlyExpected = errors.New("an Inventory can only be expected: give the object that keeps it, as a Rollout has it")

// given returns obj as it is to be stored.
func given(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	obj = realObject(obj)
	if _, ok := obj.(*Inventory); ok {
		return nil, errOnlyExpected
	}
	if duck.IsDuck(obj, scheme) {
		u := &unstructured.Unstructured{}
		if err := duck.Convert(obj, u); err != nil {
			return nil, fmt.Errorf("cannot store %T %q: %w", obj, obj.GetName(), err)
		}
		obj = u
	}
	if obj.GetCreationTimestamp().Time.IsZero() {
		obj.SetCreationTimestamp(seededAt)
	}
	return obj, nil
}

func isDryRun(values []string) bool {
	return slices.Contains(values, metav1.DryRunAll)
}
