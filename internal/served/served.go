// Package served finds out whether, and in which version, the API server serves a type. It separates the error for a
// type that is not served from the error for an object that does not exist.
package served

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// IsNotFound reports whether an error says that the object does not exist. It is false if the type is not served: such
// an answer says nothing about the object.
func IsNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsVersionGone reports whether the API server no longer has the path at which the type was served. What the client
// knows of the type is then out of date.
func IsVersionGone(err error) bool { return apierrors.IsNotFound(err) && !IsNotFound(err) }

// IsNotServed reports whether an error says that the type is not served in the requested version. Another version may
// be served, so the error says nothing about the object.
func IsNotServed(err error) bool { return meta.IsNoMatchError(err) || IsVersionGone(err) }

// Discoverer is a REST mapper that can also ask the API server itself. A mapper alone cannot separate an API that does
// not answer from an API that does not exist.
type Discoverer interface {
	// Discover is [Discover].
	Discover(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionResource, error)
	// Known returns where a type is served, as far as the mapper knows that. It asks the API server only if the mapper
	// knows of no type yet.
	Known(gk schema.GroupKind) (mapping *meta.RESTMapping, ok bool)
	// Learn tells the mapper what a definition says. The mapper then need not ask.
	Learn(d *Definition)
}

// Version returns the version in which a type is served now. ok is false if no version is served. The error says that
// this could not be found out. Version resets the mapper if it can be reset, and trusts a mapper that is not a
// [Discoverer].
func Version(ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind) (version string, ok bool, err error) {
	meta.MaybeResetRESTMapper(mapper)
	if discoverer, can := mapper.(Discoverer); can {
		var at schema.GroupVersionResource
		if at, err = discoverer.Discover(ctx, gk); err == nil {
			return at.Version, !at.Empty(), nil
		}
	} else {
		var mapping *meta.RESTMapping
		if mapping, err = mapper.RESTMapping(gk); err == nil {
			return mapping.GroupVersionKind.Version, true, nil
		}
		// A mapper also answers "no match" when an API of the group did not say what it serves. That is another error
		// type.
		var unknown *meta.NoKindMatchError
		if errors.As(err, &unknown) {
			return "", false, nil
		}
		if meta.IsNoMatchError(err) {
			err = errors.New("not every API of its group tells what it serves")
		}
	}
	return "", false, fmt.Errorf("unable to find out in which version the type is served: %w", err)
}

// Discover asks the API server where it serves a type. The result is empty if it does not serve the type. The error
// says that this could not be found out: an API that does not answer may still exist.
func Discover(ctx context.Context, api rest.Interface, gk schema.GroupKind) (schema.GroupVersionResource, error) {
	var none schema.GroupVersionResource
	path, versions := "/api", []string{"v1"}
	if gk.Group != "" {
		path, versions = "/apis/"+gk.Group, nil
		var group metav1.APIGroup
		err := api.Get().AbsPath(path).Do(ctx).Into(&group)
		if apierrors.IsNotFound(err) {
			return none, nil
		}
		if err != nil {
			return none, err
		}
		if preferred := group.PreferredVersion.Version; preferred != "" {
			versions = append(versions, preferred)
		}
		for _, version := range group.Versions {
			if version.Version != group.PreferredVersion.Version {
				versions = append(versions, version.Version)
			}
		}
	}
	var errs []error
	for _, version := range versions {
		var list metav1.APIResourceList
		err := api.Get().AbsPath(path, version).Do(ctx).Into(&list)
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
		if at := ResourceOf(&list, gk.WithVersion(version)); !at.Empty() {
			return at, nil
		}
	}
	return none, errors.Join(errs...)
}

// ResourceOf returns the resource of a kind in the list of a group and version. It is empty if the list has none.
func ResourceOf(list *metav1.APIResourceList, gvk schema.GroupVersionKind) schema.GroupVersionResource {
	for _, resource := range list.APIResources {
		if resource.Kind == gvk.Kind && !strings.Contains(resource.Name, "/") {
			return gvk.GroupVersion().WithResource(resource.Name)
		}
	}
	return schema.GroupVersionResource{}
}
