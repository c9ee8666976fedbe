package testing

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// givenTime is the creation time of a given object that has none.
var givenTime = metav1.NewTime(time.UnixMilli(1000))

var errOnlyExpected = errors.New("an Inventory can only be expected: give the object that keeps it, from a Rollout")

// given returns obj in the form in which it is stored.
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
		obj.SetCreationTimestamp(givenTime)
	}
	return obj, nil
}

// Release ends the use of the config. With a Server, it deletes the objects there that the config was given and that
// were created or applied through it, even if they have finalizers. Without one it makes the copies of the scheme
// available to the next config. The test cases call it.
func (c *ExpectConfig) Release(ctx context.Context) error {
	configMu.Lock()
	p := c.parts
	configMu.Unlock()
	if p == nil {
		return nil
	}
	return p.close(ctx)
}

// fetch fills obj from the Server, or a faithful one. In a compatible config it does nothing.
func (c *ExpectConfig) fetch(ctx context.Context, obj client.Object) error {
	if c.Server == nil && !c.faithful {
		return nil
	}
	return c.made().client.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// asGiven returns a copy of obj with the resource version that a given object has.
func asGiven[Type client.Object](obj Type) Type {
	c := objects.Copy(obj)
	if c.GetResourceVersion() == "" {
		c.SetResourceVersion(objects.GivenVersion)
	}
	return c
}

// copyOfValue returns a deep copy of an object, and any other value as it is.
func copyOfValue(value any) any {
	if obj, ok := value.(runtime.Object); ok && !gotype.IsNil(obj) {
		return obj.DeepCopyObject()
	}
	return value
}
