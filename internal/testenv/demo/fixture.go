package demo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fixture is the cluster of a scenario, as an administrator sees it.
type Fixture struct {
	Client client.Client
	// created are the objects that the scenario created, in this order.
	created []client.Object
	// remembered are the objects of the last call of Remember.
	remembered []client.Object
}

// Create creates objects, which Close deletes. It returns an error if one exists already.
func (f *Fixture) Create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := f.Client.Create(ctx, obj); err != nil {
			if apierrors.IsAlreadyExists(err) {
				err = AlreadyThere(err)
			}
			return err
		}
		f.created = append(f.created, obj)
	}
	return nil
}

// AlreadyThere returns the error for an object that the scenario would create and that exists already.
func AlreadyThere(err error) error {
	return fmt.Errorf("%w: the scenario would change and delete it, so it is not played in this cluster", err)
}

// Grant creates a role in the cluster, and gives it to a user.
func (f *Fixture) Grant(ctx context.Context, role *rbacv1.ClusterRole, user string) error {
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.Name = role.Name
	return f.Create(ctx, role, binding)
}

// Patch changes an object by a merge patch, which does not conflict with other changes.
func (f *Fixture) Patch(ctx context.Context, obj client.Object, change string) error {
	return f.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(change)))
}

// Exist holds when the objects exist.
func (f *Fixture) Exist(objects ...client.Object) Condition {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), blank(obj)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Gone holds when there are no objects of these names.
func (f *Fixture) Gone(objects ...client.Object) Condition {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), blank(obj))
			if err == nil {
				return fmt.Errorf("there is still the %T %s", obj, obj.GetName())
			}
			if !IsGone(err) {
				return err
			}
		}
		return nil
	}
}

// IsGone reports whether err says that an object, or its type, does not exist.
func IsGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// Remember reads objects, for Untouched and Replaced.
func (f *Fixture) Remember(ctx context.Context, objects ...client.Object) error {
	f.remembered = nil
	for _, obj := range objects {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		f.remembered = append(f.remembered, obj)
	}
	return nil
}

// Untouched holds when the remembered objects have not changed. The status may change: other controllers write it.
func (f *Fixture) Untouched(ctx context.Context) error {
	return f.compare(ctx, "is not as it was", func(before, now client.Object) (bool, error) {
		first, err := normalized(before)
		if err != nil {
			return false, err
		}
		second, err := normalized(now)
		return equality.Semantic.DeepEqual(first, second), err
	})
}

// Replaced holds when the objects with the remembered names have other UIDs.
func (f *Fixture) Replaced(ctx context.Context) error {
	return f.compare(ctx, "is the old one", func(before, now client.Object) (bool, error) {
		return now.GetUID() != before.GetUID(), nil
	})
}

func (f *Fixture) compare(
	ctx context.Context, problem string, holds func(before, now client.Object) (bool, error),
) error {
	if len(f.remembered) == 0 {
		return errors.New("nothing was remembered")
	}
	for _, before := range f.remembered {
		now := blank(before)
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
			return err
		}
		if ok, err := holds(before, now); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("%T %s/%s %s", before, before.GetNamespace(), before.GetName(), problem))
		}
	}
	return nil
}

// normalized returns the content of an object without its status and without the metadata that changes with each write.
func normalized(obj client.Object) (map[string]any, error) {
	// The converter does not copy the content of an unstructured object.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content, nil
}

// Named returns an object that has a name and a namespace, and nothing else.
func Named[T any, Object interface {
	*T
	client.Object
}](namespace, name string) Object {
	obj := Object(new(T))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// blank returns an empty object of the type and kind. Decoding into an object with content might keep fields of it.
func blank(obj client.Object) client.Object {
	if _, ok := obj.(runtime.Unstructured); ok {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
		return empty
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}

// remove deletes the created objects except for the first ones, in reverse order, and returns when they are gone. While
// failure returns an error, no operator runs that would remove their finalizers, so remove does.
func (f *Fixture) remove(ctx context.Context, keep int, failure func() error) error {
	objects := slices.Clone(f.created[keep:])
	f.created = f.created[:keep]
	slices.Reverse(objects)
	// Webhooks could refuse to delete other objects.
	slices.SortStableFunc(objects, func(a, b client.Object) int { return webhookFirst(a) - webhookFirst(b) })
	var errs []error
	for _, obj := range objects {
		errs = append(errs, Eventually(ctx, Patience, func(ctx context.Context) error { return f.Delete(ctx, obj) }))
	}
	for _, obj := range objects {
		err := Eventually(ctx, Patience, func(ctx context.Context) error {
			if failure != nil && failure() != nil {
				if err := f.dropFinalizers(ctx, obj); err != nil {
					return err
				}
			}
			return f.isRemoved(ctx, obj)
		})
		if err != nil {
			errs = append(errs, err, f.dropFinalizers(ctx, obj))
		}
	}
	return errors.Join(errs...)
}

func webhookFirst(obj client.Object) int {
	switch obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
		return 0
	}
	return 1
}

// Delete deletes the object, but no other object of its name.
func (f *Fixture) Delete(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := f.Client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if IsGone(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// isRemoved returns an error while an object with the UID of obj exists.
func (f *Fixture) isRemoved(ctx context.Context, obj client.Object) error {
	current := blank(obj)
	err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), current)
	if err == nil && current.GetUID() == obj.GetUID() {
		return fmt.Errorf("there is still the %T %s", obj, obj.GetName())
	}
	if err == nil || IsGone(err) {
		return nil
	}
	return err
}

func (f *Fixture) dropFinalizers(ctx context.Context, obj client.Object) error {
	err := f.Patch(ctx, obj.DeepCopyObject().(client.Object), `{"metadata":{"finalizers":null}}`)
	if IsGone(err) {
		return nil
	}
	return err
}
