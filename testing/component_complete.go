package testing

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/apiresources"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// complete completes all objects as the controllers of a cluster would, and reports whether the server stores anything
// else since.
func (c *cluster[Type]) complete(ctx context.Context) (bool, error) {
	all, err := c.objects(ctx)
	if err != nil {
		return false, err
	}
	changed := false
	for _, before := range all {
		completed, err := c.rollout.completed(before.DeepCopy())
		if err != nil {
			return changed, err
		}
		if equality.Semantic.DeepEqual(before.Object, completed.Object) {
			continue
		}
		after, err := c.store(ctx, completed)
		if err != nil {
			return changed, fmt.Errorf("%s cannot be stored as Complete leaves it: %w", c.keyOf(before), err)
		}
		changed = changed || !sameContent(before, after)
	}
	return changed, nil
}

// completed returns what Complete makes of an object, in the Go types that its JSON is read into.
func (r Rollout[Type]) completed(obj *unstructured.Unstructured) (completed *unstructured.Unstructured, err error) {
	name := obj.GetKind() + " " + client.ObjectKeyFromObject(obj).String()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("unable to complete %s, the function panicked: %v\n%s", name, cause, words.StackOfPanic())
		}
	}()
	apiresources.Establish(obj, RolledOutAt)
	if r.Complete != nil {
		r.Complete(obj)
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("what Complete made of %s is no JSON: %w", name, err)
	}
	completed = &unstructured.Unstructured{}
	return completed, utiljson.Unmarshal(raw, &completed.Object)
}

// store writes an object with its status, and returns it as it is stored then.
func (c *cluster[Type]) store(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	writer := client.WithFieldOwner(c.unrecorded, "cluster")
	// An update does not write the status of a type with a status subresource, and a status update nothing else.
	withStatus := obj.DeepCopy()
	if err := writer.Update(ctx, obj); err != nil {
		return nil, err
	}
	withStatus.SetResourceVersion(obj.GetResourceVersion())
	if err := client.IgnoreNotFound(writer.Status().Update(ctx, withStatus)); err != nil {
		return nil, err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(obj.GroupVersionKind())
	return stored, c.unrecorded.Get(ctx, client.ObjectKeyFromObject(obj), stored)
}

// sameContent reports whether two states of an object differ in nothing but their versions and managed fields.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(obj *unstructured.Unstructured) map[string]any {
		obj = obj.DeepCopy()
		obj.SetResourceVersion("")
		obj.SetManagedFields(nil)
		return obj.Object
	}
	return equality.Semantic.DeepEqual(content(a), content(b))
}
