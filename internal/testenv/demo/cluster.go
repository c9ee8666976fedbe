package storytelling

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is the one that a story is told in, as seen by somebody who may do everything.
type Cluster struct {
	Client client.Client
	// created are the objects that the story has made itself, in this order.
	created []client.Object
}

// Create creates an object that RemoveCreated is to take away.
func (c *Cluster) Create(ctx context.Context, obj client.Object) error {
	if err := c.Client.Create(ctx, obj); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%w: the story would change and delete it, so it is not told in this cluster", err)
		}
		return err
	}
	c.created = append(c.created, obj)
	return nil
}

// Created returns the objects that the story has made itself, in this order.
func (c *Cluster) Created() []client.Object { return slices.Clone(c.created) }

// Grant creates a role in the cluster, and gives it to a user.
func (c *Cluster) Grant(ctx context.Context, role *rbacv1.ClusterRole, user string) error {
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.Name = role.Name
	for _, obj := range []client.Object{role, binding} {
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("unable to install the roles of the operator: %w", err)
		}
	}
	return nil
}

// Patch changes an object by a merge patch, so that it meets whatever the object has become.
func (c *Cluster) Patch(ctx context.Context, obj client.Object, namespace, name, change string) error {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return c.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(change)))
}

// IsUntouched holds when an object is as it was. A status does not count: other controllers may have reasons to write
// it.
func (c *Cluster) IsUntouched(ctx context.Context, before client.Object) error {
	now := blank(before)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	same, err := sameEssence(before, now)
	if err == nil && !same {
		return fmt.Errorf("%T %s/%s is not as it was", before, before.GetNamespace(), before.GetName())
	}
	return err
}

// blank returns an object of the type and kind, and nothing else: what is read into one that has fields may leave
// these.
func blank(obj client.Object) client.Object {
	if _, ok := obj.(runtime.Unstructured); ok {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
		return empty
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}

// RemoveCreated deletes what the story has made, the last first, and returns when it is gone.
func (c *Cluster) RemoveCreated(ctx context.Context) error {
	var errs []error
	for _, obj := range slices.Backward(c.created) {
		err := c.Delete(ctx, obj)
		if err == nil {
			err = Eventually(ctx, Patience, func(ctx context.Context) error { return c.Gone(ctx, obj) })
		}
		errs = append(errs, err)
	}
	c.created = nil
	return errors.Join(errs...)
}

// Delete deletes the very object that the story has made.
func (c *Cluster) Delete(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := c.Client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if IsGone(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Gone returns an error as long as that very object is there.
func (c *Cluster) Gone(ctx context.Context, obj client.Object) error {
	current := obj.DeepCopyObject().(client.Object)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), current)
	if err == nil && current.GetUID() == obj.GetUID() {
		return fmt.Errorf("there is still the %T %s", obj, obj.GetName())
	}
	if IsGone(err) {
		return nil
	}
	return err
}

// DropFinalizers lets an object go that nobody cleans up after.
func (c *Cluster) DropFinalizers(ctx context.Context, obj client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(c.Client.Patch(ctx, obj, patch))
}
