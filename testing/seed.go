package testing

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// seededVersion is the resource version that the fake client gives to a given object that has none.
const seededVersion = "999"

// seededAt is the creation time of a given object that has none.
var seededAt = metav1.NewTime(time.UnixMilli(1000))

var errOnlyExpected = errors.New("an Inventory can only be expected: give the object that keeps it, as a Rollout has it")

// given returns obj as it is to be stored.
func given(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	obj = objects.Copy(obj)
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
