package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Warn shows a warning to whoever made the admission request, whether it is allowed or not. Equal texts are shown once.
// Control characters, such as the ends of lines, become spaces.
//
// The API server may cut texts of more than 256 characters, and leaves out what exceeds 4096 in all. Outside a webhook
// there is nobody to show it to, and Warn does nothing. Nodes that run at the same time may call it.
func Warn(ctx context.Context, format string, args ...any) {
	s := contextOf(ctx)
	text := warningText(fmt.Sprintf(format, args...))
	if s.admissionResponse == nil || text == "" {
		return
	}
	if s.state != nil {
		s.state.mu.Lock()
		defer s.state.mu.Unlock()
	}
	if !slices.Contains(s.admissionResponse.Warnings, text) {
		s.admissionResponse.Warnings = append(s.admissionResponse.Warnings, text)
	}
}

// warningText returns what a header of HTTP can carry of text: the API server drops a warning that it cannot. What is
// no UTF-8 is replaced on the way.
func warningText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// Deny returns an error that refuses an admission request as Forbidden, with that message. A ResourceReconciler takes
// it for an error like any other.
func Deny(format string, args ...any) error {
	return &denial{StatusError: &apierrs.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: fmt.Sprintf(format, args...),
	}}}
}

// InvalidFields returns an error that refuses an admission request since fields of resource are not as they should be,
// each told to the client as a cause; nil if there are none. A ResourceReconciler takes it for an error like any other.
//
// Field errors that a node returns as they are mean the same to a webhook.
func InvalidFields(ctx context.Context, resource client.Object, fields field.ErrorList) error {
	fields = slices.DeleteFunc(slices.Clone(fields), func(err *field.Error) bool { return err == nil })
	if len(fields) == 0 {
		return nil
	}
	kind, name := identify(ctx, resource)
	return &denial{StatusError: apierrs.NewInvalid(kind, name, fields), fields: fields}
}

// identify returns what error texts call resource.
func identify(ctx context.Context, resource client.Object) (schema.GroupKind, string) {
	s := contextOf(ctx)
	if isNil(resource) {
		return schema.GroupKind{}, s.request.Name
	}
	name := resource.GetName()
	if name == "" && resource.GetGenerateName() != "" {
		name = resource.GetGenerateName() + "*"
	}
	gvk := resource.GetObjectKind().GroupVersionKind()
	if gvk.Empty() && !isNil(s.config.Client) {
		gvk = kindOf(s.config.Client, resource)
	}
	if gvk.Empty() {
		gvk.Kind = typeName(resource)
	}
	return gvk.GroupKind(), name
}

// RetrieveOldResource returns the object of an update or delete request as it was before, with its defaults filled in
// as those of the new one are, so that the two can be compared. It returns nil where there is none: in a create or
// connect request, and outside a webhook. Each call returns an object of its own.
//
// T is the type of the resource as the node sees it, or another one that the object can be decoded into.
func RetrieveOldResource[T client.Object](ctx context.Context) (T, error) {
	var none T
	s := contextOf(ctx)
	if s.admissionRequest == nil || len(s.admissionRequest.OldObject.Raw) == 0 {
		return none, nil
	}
	old, ok := s.resourceType.(T)
	if ok && !isNil(old) {
		old = copyOf(old)
	} else if old = defaultType(none); isNil(old) {
		return none, fmt.Errorf("unable to decode the old object: no value can be made of %s", reflect.TypeFor[T]())
	}
	if err := utiljson.Unmarshal(s.admissionRequest.OldObject.Raw, old); err != nil {
		return none, fmt.Errorf("unable to decode the old object: %w", err)
	}
	if err := applyDefaults(ctx, old); err != nil {
		return none, fmt.Errorf("unable to fill in the defaults of the old object: %w", err)
	}
	return old, nil
}
