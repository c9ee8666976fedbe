package demo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fixture is the cluster of a scenario, as an administrator sees it.
type Fixture struct {
	Client client.Client
	// created are the objects that the scenario created, in this order.
	created []client.Object
	// remembered are the objects that Remembers has read last.
	remembered []client.Object
}

// Action does something in a step.
type Action func(ctx context.Context) error

// Creates creates copies of the objects, which Close deletes. It fails if one exists already.
func (f *Fixture) Creates(objects ...client.Object) Action {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			obj = obj.DeepCopyObject().(client.Object)
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
}

// AlreadyThere returns the error for an object that the scenario would create and that exists already.
func AlreadyThere(err error) error {
	return fmt.Errorf("%w: the scenario would change and delete it, so it is not played in this cluster", err)
}

// Grants creates a role in the cluster, and gives it to a user.
func (f *Fixture) Grants(role *rbacv1.ClusterRole, user string) Action {
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.Name = role.Name
	return f.Creates(role, binding)
}

// Patches changes an object by a merge patch, which does not conflict with other changes.
func (f *Fixture) Patches(obj client.Object, change string) Action {
	return func(ctx context.Context) error {
		patch := client.RawPatch(types.MergePatchType, []byte(change))
		return f.Client.Patch(ctx, obj.DeepCopyObject().(client.Object), patch)
	}
}

// PatchesStatus changes the status of an object by a merge patch.
func (f *Fixture) PatchesStatus(obj client.Object, change string) Action {
	return func(ctx context.Context) error {
		patch := client.RawPatch(types.MergePatchType, []byte(change))
		return f.Client.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), patch)
	}
}

// Deletes deletes the objects of these names.
func (f *Fixture) Deletes(objects ...client.Object) Action {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			if err := f.Client.Delete(ctx, blankNamed(obj)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Finds holds when the object exists and look, which is called with it, returns no error.
func Finds[Object client.Object](f *Fixture, obj Object, look func(Object) error) Condition {
	return func(ctx context.Context) error {
		found := blank(obj).(Object)
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
			return err
		}
		return look(found)
	}
}

// HasData holds when the ConfigMap has the values, given as keys and values in turns.
func (f *Fixture) HasData(configMap *corev1.ConfigMap, pairs ...string) Condition {
	return Finds(f, configMap, func(found *corev1.ConfigMap) error {
		for i := 0; i < len(pairs); i += 2 {
			if value := found.Data[pairs[i]]; value != pairs[i+1] {
				return fmt.Errorf("the %s of %s is %q, not %q", pairs[i], found.Name, value, pairs[i+1])
			}
		}
		return nil
	})
}

// Has holds when that is what "kubectl get -o jsonpath" prints of the object.
func (f *Fixture) Has(obj client.Object, path, want string) Condition {
	return func(ctx context.Context) error {
		found, err := f.content(ctx, obj)
		if err != nil {
			return err
		}
		var text strings.Builder
		reader := jsonpath.New(path).AllowMissingKeys(true)
		if err := errors.Join(reader.Parse(path), reader.Execute(&text, found.Object)); err != nil {
			return err
		}
		if text.String() != want {
			return fmt.Errorf("%s of %s is %q, not %q", path, obj.GetName(), &text, want)
		}
		return nil
	}
}

// content reads an object of any type.
func (f *Fixture) content(ctx context.Context, obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := f.Client.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	return found, f.Client.Get(ctx, client.ObjectKeyFromObject(obj), found)
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

// Owned holds when the owner is the controller of the objects, so that they are deleted with it.
func (f *Fixture) Owned(owner client.Object, objects ...client.Object) Condition {
	return func(ctx context.Context) error {
		owner := blankNamed(owner)
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
			return err
		}
		for _, obj := range objects {
			obj = blankNamed(obj)
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			if !metav1.IsControlledBy(obj, owner) {
				return fmt.Errorf("the controller of %T %s is not %s", obj, obj.GetName(), owner.GetName())
			}
		}
		return nil
	}
}

// Remembers reads the objects of these names, for Untouched and Replaced.
func (f *Fixture) Remembers(objects ...client.Object) Action {
	return func(ctx context.Context) error {
		f.remembered = nil
		for _, obj := range objects {
			found := blank(obj)
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
				return err
			}
			f.remembered = append(f.remembered, found)
		}
		return nil
	}
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

// blankNamed returns an object with the kind, the namespace and the name of another, and nothing else.
func blankNamed(obj client.Object) client.Object {
	named := blank(obj)
	named.SetNamespace(obj.GetNamespace())
	named.SetName(obj.GetName())
	return named
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
		errs = append(errs, Eventually(ctx, Patience, func(ctx context.Context) error { return f.Remove(ctx, obj) }))
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

// Remove deletes the object that was read or created, but no other object of its name.
func (f *Fixture) Remove(ctx context.Context, obj client.Object) error {
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
	err := f.Patches(obj, `{"metadata":{"finalizers":null}}`)(ctx)
	if IsGone(err) {
		return nil
	}
	return err
}
