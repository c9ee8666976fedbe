package store

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/registry"
)

// The errors that client-go returns without a request.
var (
	errNoName          = errors.New("resource name may not be empty")
	errNoNamespace     = errors.New("an empty namespace may not be set when a resource name is provided")
	errCreatePartial   = errors.New("cannot create using only metadata")
	errUpdatePartial   = errors.New("cannot update using only metadata -- did you mean to patch?")
	errStatusOfPartial = errors.New("cannot update subresource using only metadata -- did you mean to patch?")
)

// checkName refuses what names no object.
func (r *resource) checkName(namespace, name string) error {
	switch {
	case name == "":
		return errNoName
	case namespace == "" && r.scope == registry.Namespaced:
		return errNoNamespace
	}
	return nil
}

// noSubresource is the error for a path that is not served.
func noSubresource(r *resource, name string) error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", r.resource, name, "", 0, true)
}

// refuseTerminating is the error for the creation of an object whose definition is being deleted.
func refuseTerminating(r *resource) error {
	err := apierrors.NewMethodNotSupported(r.resource, "create")
	err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	return err
}

// terminating reports whether the definition of the kind is being deleted.
func (r *resource) terminating() bool {
	return r.definition != nil && r.definition.DeletionTimestamp != nil
}

// fromJSON returns the content in the Go type of the kind. They may share parts.
func (r *resource) fromJSON(content map[string]any) (client.Object, error) {
	obj := r.New()
	if u, ok := obj.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return obj, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			r.gvk.Kind, r.gvk.Version, r.gvk.Kind, err))
	}
	return obj, nil
}
