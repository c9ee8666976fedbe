// Package served tells a type that the API server does not serve from an object that does not exist, and in which version a type
// is served now.
package served

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Absent tells whether an error says that the object asked for does not exist, rather than that its type is not served: then
// nobody has answered who knows the type.
func Absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Elsewhere tells whether the API server, asked where the type was known to be served, knew nothing of it. What was known is
// then worth being forgotten.
func Elsewhere(err error) bool {
	return apierrors.IsNotFound(err) && !Absent(err)
}

// Refused tells whether an error says that the type is not served in the version, or not there, where it was asked for. It may
// be served in another one, so that the error tells nothing about the object.
func Refused(err error) bool {
	return meta.IsNoMatchError(err) || Elsewhere(err)
}

// Discoverer is a REST mapper that can ask the API server itself: of an API that does not answer, a mapper cannot tell that it
// exists.
type Discoverer interface {
	// Discover is [Discover].
	Discover(ctx context.Context, gk schema.GroupKind) (at schema.GroupVersionResource, ok bool, err error)
}

// Version returns the version in which a type is served now. ok is false if it is served in none; the error is that this could not
// be found out. The mapper is reset first, if it can be, and believed if it is no [Discoverer].
func Version(ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind) (version string, ok bool, err error) {
	meta.MaybeResetRESTMapper(mapper)
	if discoverer, can := mapper.(Discoverer); can {
		at, ok, err := discoverer.Discover(ctx, gk)
		if err != nil {
			return "", false, fmt.Errorf("unable to find out in which version the type is served: %w", err)
		}
		return at.Version, ok, nil
	}
	mapping, err := mapper.RESTMapping(gk)
	// That an API did not say what it serves is another error, although it counts as no match as well.
	var unknown *meta.NoKindMatchError
	switch {
	case err == nil:
		return mapping.GroupVersionKind.Version, true, nil
	case errors.As(err, &unknown):
		return "", false, nil
	case meta.IsNoMatchError(err):
		err = errSilent
	}
	return "", false, fmt.Errorf("unable to find out in which version the type is served: %w", err)
}

var errSilent = errors.New("not every API of its group tells what it serves")
