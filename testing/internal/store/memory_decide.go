package store

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The decisions in the files decide*.go follow k8s.io/apiserver/pkg/registry: BeforeCreate, BeforeUpdate and
// BeforeDelete of the package rest, and Store of the package generic/registry.

// verdict says what becomes of an object.
type verdict int

const (
	// unchanged leaves the object, and its version, as it is.
	unchanged verdict = iota
	// stored replaces the object.
	stored
	// removed takes the object away.
	removed
)

// identity is what an object gets when it is created.
type identity struct {
	name string
	uid  types.UID
	time metav1.Time
}

// decideCreate completes an object to be created, in place, or refuses it.
func decideCreate(r *resource, obj client.Object, id identity) error {
	version := obj.GetResourceVersion()
	obj.SetName(id.name)
	obj.SetUID(id.uid)
	obj.SetCreationTimestamp(id.time)
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetResourceVersion("")
	obj.SetSelfLink("")
	r.PrepareForCreate(obj)
	if errs := r.Validate(obj); len(errs) > 0 {
		return apierrors.NewInvalid(r.gvk.GroupKind(), obj.GetName(), errs)
	}
	if version != "" && version != "0" {
		return unknown(errors.New("resourceVersion should not be set on objects to be created"))
	}
	return nil
}

// decideUpdate completes an object that takes the place of live, in place, and says what becomes of it. An empty
// resource version accepts any, if the kind allows it. The two objects may share parts then, which nobody changes.
func decideUpdate(r *resource, live, next client.Object, subresource string) (verdict, error) {
	if err := checkVersion(r, live, next); err != nil {
		return unchanged, err
	}
	next.SetResourceVersion(live.GetResourceVersion())
	if next.GetUID() == "" {
		next.SetUID(live.GetUID())
	}
	next.SetGeneration(live.GetGeneration())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	if live.GetDeletionTimestamp() != nil {
		next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	}
	if next.GetDeletionGracePeriodSeconds() == nil {
		next.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	}
	next.SetSelfLink("")
	r.PrepareForUpdate(next, live, subresource)
	if errs := r.ValidateUpdate(next, live, subresource); len(errs) > 0 {
		return unchanged, apierrors.NewInvalid(r.gvk.GroupKind(), live.GetName(), errs)
	}
	switch {
	case ends(next, live):
		return removed, nil
	case equality.Semantic.DeepEqual(live, next):
		return unchanged, nil
	}
	return stored, nil
}

// checkVersion refuses an update of another version than the live one.
func checkVersion(r *resource, live, next client.Object) error {
	version := next.GetResourceVersion()
	if _, err := strconv.ParseUint(version, 10, 64); err != nil && version != "" {
		return unknown(err)
	}
	switch {
	case version == live.GetResourceVersion():
		return nil
	case version != "" && version != "0":
		return conflict(r, live.GetName(), "the object has been modified; please apply your changes to the latest "+
			"version and try again")
	case r.kind.AllowUnconditionalUpdate:
		return nil
	}
	kind := schema.GroupKind{Group: r.resource.Group, Kind: r.resource.Resource}
	return apierrors.NewInvalid(kind, live.GetName(), field.ErrorList{field.Invalid(
		field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
}

// checkUID refuses an update of another object than the live one, which may be nil.
func checkUID(r *resource, live *record, next client.Object) error {
	uid := types.UID("")
	if live != nil {
		uid = live.object.GetUID()
	}
	if given := next.GetUID(); given != "" && given != uid {
		return conflict(r, next.GetName(), "Precondition failed: UID in precondition: %v, UID in object meta: %v",
			given, uid)
	}
	return nil
}

func conflict(r *resource, name, format string, args ...any) error {
	return apierrors.NewConflict(r.resource, name, fmt.Errorf(format, args...))
}

// ends reports whether an update ends a deletion: nothing holds the object any more.
func ends(next, live client.Object) bool {
	if live.GetDeletionTimestamp() == nil || len(next.GetFinalizers()) > 0 {
		return false
	}
	if ns, ok := next.(*corev1.Namespace); ok {
		return len(ns.Spec.Finalizers) == 0
	}
	grace := live.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
