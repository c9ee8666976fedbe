package store

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// The errors that client-go returns without a request.
var (
	errNoName          = errors.New("resource name may not be empty")
	errNoNamespace     = errors.New("an empty namespace may not be set when a resource name is provided")
	errCreatePartial   = errors.New("cannot create using only metadata")
	errUpdatePartial   = errors.New("cannot update using only metadata -- did you mean to patch?")
	errGetOfPartial    = errors.New("can not get subresource using only metadata")
	errStatusOfPartial = errors.New("cannot update subresource using only metadata -- did you mean to patch?")
)

// errTerminating is the reason of an API server not to create an object whose definition is being deleted.
var errTerminating = errors.New("create not allowed while custom resource definition is terminating")

// checkName refuses what names no object.
func (r *resource) checkName(namespace, name string) error {
	switch {
	case name == "":
		return errNoName
	case namespace == "" && r.kind.Scope == registry.Namespaced:
		return errNoNamespace
	}
	return nil
}

// unknown is the error for what an API server did not expect: it says nothing but the text.
func unknown(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// asStatus returns an error that says what is wrong as it is, and any other as [unknown].
func asStatus(err error) error {
	if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	return unknown(err)
}

// invalidOptions is the error for options of a call that an API server refuses; nil if there is nothing wrong.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// invalidPatch is the error for a patch after which an object is none of its kind.
func invalidPatch(p patchRequest, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(p.data), err.Error()),
	})
}

// noSubresource is the error for a path that is not served.
func noSubresource(r *resource, name string) error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", r.resource, name, "", 0, true)
}

// methodNotAllowed is the error for a path that is served, but not with this verb.
func methodNotAllowed(r *resource, name string) error {
	return apierrors.NewGenericServerResponse(
		http.StatusMethodNotAllowed, "", r.resource, name, "", 0, true)
}
