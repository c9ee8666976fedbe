package simulation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Actor is somebody who changes the cluster: the user of a story, a kubelet, somebody who deletes what is not theirs.
// Each step is tried again for ten minutes if the API server cannot be reached, is busy, or somebody else wrote the
// object at the same time. A step that fails ends the story.
type Actor struct {
	// Client makes any request, and does not try it again.
	Client client.Client
	world  *World
	name   string
}

// Create creates objects. They are as the API server returns them afterwards.
func (a *Actor) Create(objects ...client.Object) {
	a.world.Helper()
	for _, obj := range objects {
		a.step("create", obj, a.create(obj))
	}
}

// create returns an attempt to create an object. An object that another attempt finds counts as created: the answer to
// an earlier one was lost.
func (a *Actor) create(obj client.Object) func(ctx context.Context) error {
	first := true
	return func(ctx context.Context) error {
		err := a.Client.Create(ctx, obj)
		if apierrors.IsAlreadyExists(err) && !first {
			return a.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		}
		first = false
		return err
	}
}

// Update reads an object, changes it by a function, which changes the object that is given, and writes it.
func (a *Actor) Update(obj client.Object, change func()) {
	a.world.Helper()
	a.step("update", obj, func(ctx context.Context) error {
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return a.Client.Update(ctx, obj)
	})
}

// Replace has the resource of the name of obj become what obj says, as kubectl replace does: its labels, annotations
// and all other fields, but for the status, finalizers and owner references.
func (a *Actor) Replace(obj *unstructured.Unstructured) {
	a.world.Helper()
	a.step("replace", obj, func(ctx context.Context) error { return a.replace(ctx, obj) })
}

func (a *Actor) replace(ctx context.Context, obj *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return err
	}
	next := obj.DeepCopy()
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetFinalizers(live.GetFinalizers())
	next.SetOwnerReferences(live.GetOwnerReferences())
	delete(next.Object, "status")
	if status, ok := live.Object["status"]; ok {
		next.Object["status"] = status
	}
	return a.Client.Update(ctx, next)
}

// Status is as Update for the status of an object.
func (a *Actor) Status(obj client.Object, change func()) {
	a.world.Helper()
	a.step("update the status of", obj, func(ctx context.Context) error {
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return a.Client.Status().Update(ctx, obj)
	})
}

// Delete deletes objects. It does not wait for their finalizers.
func (a *Actor) Delete(objects ...client.Object) {
	a.world.Helper()
	for _, obj := range objects {
		a.step("delete", obj, a.delete(obj))
	}
}

// delete returns an attempt to delete an object. One that another attempt does not find counts as deleted: the answer
// to an earlier one was lost.
func (a *Actor) delete(obj client.Object) func(ctx context.Context) error {
	first := !a.world.deletes(obj)
	return func(ctx context.Context) error {
		err := a.Client.Delete(ctx, obj)
		if apierrors.IsNotFound(err) && !first {
			return nil
		}
		first = false
		return err
	}
}

// Get reads an object by its name.
func (a *Actor) Get(obj client.Object) {
	a.world.Helper()
	a.step("get", obj, func(ctx context.Context) error {
		return a.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	})
}

// List reads the objects that options select.
func (a *Actor) List(list client.ObjectList, options ...client.ListOption) {
	a.world.Helper()
	a.try(fmt.Sprintf("list %T", list), func(ctx context.Context) error {
		return a.Client.List(ctx, list, options...)
	})
}

// Exists reports whether there is an object of the name.
func (a *Actor) Exists(obj client.Object) bool {
	a.world.Helper()
	found := obj.DeepCopyObject().(client.Object)
	exists := true
	a.step("get", obj, func(ctx context.Context) error {
		err := a.Client.Get(ctx, client.ObjectKeyFromObject(obj), found)
		exists = !apierrors.IsNotFound(err)
		return client.IgnoreNotFound(err)
	})
	return exists
}

// step does something to an object until it succeeds or cannot.
func (a *Actor) step(verb string, obj client.Object, do func(ctx context.Context) error) {
	a.world.Helper()
	a.try(verb+" "+a.describe(obj), do)
}

// try does something until it succeeds or cannot.
func (a *Actor) try(what string, do func(ctx context.Context) error) {
	a.world.Helper()
	if err := a.attempt(do); err != nil && !a.world.recorder.isMuted() {
		a.world.Fatalf("%s: %s: %v", a.name, what, err)
	}
}

// attempt does something until it succeeds or cannot, and returns its last error.
func (a *Actor) attempt(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var last error
	_ = wait.PollUntilContextCancel(ctx, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		a.world.goOn()
		last = do(ctx)
		if last == nil || !passes(last) {
			return true, last
		}
		return false, nil
	})
	return last
}

// passes reports whether an error may be gone after a while.
func passes(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		net.IsConnectionRefused(err) || net.IsConnectionReset(err) || net.IsProbableEOF(err)
}

// describe returns the kind and the name of an object.
func (a *Actor) describe(obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, a.Client.Scheme())
	if err != nil {
		gvk = schema.GroupVersionKind{Kind: fmt.Sprintf("%T", obj)}
	}
	if obj.GetNamespace() == "" {
		return gvk.Kind + " " + obj.GetName()
	}
	return gvk.Kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
