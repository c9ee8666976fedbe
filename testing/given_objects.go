package testing

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// givenVersion is the resource version that the fake client gives to a given object that has none.
const givenVersion = "999"

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

// createGiven creates given objects on a real API server, with their status, and deletes those that are given as
// terminating. Objects that both readers of a config are given are created once.
func createGiven(ctx context.Context, server client.Client, objs []client.Object) error {
	for _, obj := range objs {
		if err := createOne(ctx, server, obj); err != nil {
			return fmt.Errorf("cannot create given %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
	return nil
}

func createOne(ctx context.Context, server client.Client, obj client.Object) error {
	created, err := given(obj, server.Scheme())
	if err != nil {
		return err
	}
	created.SetResourceVersion("")
	created.SetUID("")
	created.SetGeneration(0)
	created.SetCreationTimestamp(metav1.Time{})
	created.SetDeletionTimestamp(nil)
	created.SetManagedFields(nil)
	withStatus, err := asUnstructured(created, server)
	if err != nil {
		return err
	}
	if err := server.Create(ctx, created); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	if _, ok := withStatus.Object["status"]; ok {
		withStatus.SetResourceVersion(created.GetResourceVersion())
		if err := client.IgnoreNotFound(server.Status().Update(ctx, withStatus)); err != nil {
			return err
		}
	}
	if obj.GetDeletionTimestamp() != nil {
		return server.Delete(ctx, created)
	}
	return nil
}

func asUnstructured(obj client.Object, server client.Client) (*unstructured.Unstructured, error) {
	kind, err := server.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := duck.Convert(obj, u); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(kind)
	return u, nil
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
	for _, server := range p.servers {
		server.Close()
	}
	p.servers = nil
	if c.Server == nil {
		return nil
	}
	r := p.client
	objs := append(objects.CopyAll(c.GivenObjects), objects.CopyAll(c.APIGivenObjects)...)
	for _, action := range r.CreateActions {
		if obj, ok := action.GetObject().(client.Object); ok {
			objs = append(objs, obj)
		}
	}
	for _, action := range r.ApplyActions {
		objs = append(objs, targetObject(action))
	}
	for _, action := range r.PatchActions {
		if action.GetPatchType() == types.ApplyPatchType {
			objs = append(objs, targetObject(action))
		}
	}
	var errs []error
	for _, obj := range objs {
		if err := release(ctx, r.Client, obj); err != nil {
			errs = append(errs, fmt.Errorf("cannot delete %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	return errors.Join(errs...)
}

// targetObject returns an object with the kind and name of the one that an action is about.
func targetObject(action Action) client.Object {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(action.GetResource().GroupVersion().WithKind(action.GetResource().Resource))
	obj.SetNamespace(action.GetNamespace())
	obj.SetName(recording.NameOf(action))
	return obj
}

func release(ctx context.Context, server client.Client, obj client.Object) error {
	err := server.Delete(ctx, obj, client.GracePeriodSeconds(0))
	if apierrors.IsNotFound(err) || obj.GetName() == "" {
		return nil
	}
	if err != nil {
		return err
	}
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(server.Patch(ctx, obj, free))
}

// fetch fills obj from the Server. Without a Server it does nothing.
func (c *ExpectConfig) fetch(ctx context.Context, obj client.Object) error {
	if c.Server == nil {
		return nil
	}
	return c.made().client.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// withServerFields gives expected, an object of a table, the metadata of actual that only a server sets.
func withServerFields(expected, actual client.Object) {
	expected.SetResourceVersion(actual.GetResourceVersion())
	expected.SetUID(actual.GetUID())
	expected.SetGeneration(actual.GetGeneration())
	expected.SetCreationTimestamp(actual.GetCreationTimestamp())
	expected.SetManagedFields(actual.GetManagedFields())
}
