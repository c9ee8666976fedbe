package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/internal/gotype"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// denial is an error by which the author of a tree denies a request. All other errors are failures.
type denial struct {
	*apierrs.StatusError
	// fields are the field errors that the status was made of, or nil.
	fields field.ErrorList
}

func (r *denial) Unwrap() error {
	return r.StatusError
}

// deny changes resp into the answer to a request that ended with err.
func deny(ctx context.Context, p *requestState, req admission.Request, resp *admission.Response, err error) {
	if gotype.IsNil(err) {
		// The Error method of a nil pointer may panic.
		err = fmt.Errorf("the tree returned a %T that is nil", err)
	}
	found := admissionErrors{}
	found.add(err)
	if !isQuiet(err) && !found.intentional() {
		logr.FromContextOrDiscard(ctx).Error(locateError(p, err), "reconcile error")
	}
	resp.Allowed = false
	if resp.Result == nil {
		kind, name := identify(ctx, p.resourceSeen)
		if req.Kind.Kind != "" {
			kind = schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
		}
		resp.Result = found.answer(err, kind, cmp.Or(req.Name, name))
	}
}

// admissionErrors are the errors that an error joins, sorted by what they mean for the answer of a webhook.
type admissionErrors struct {
	// status is the first one of an API server, or nil.
	status *metav1.Status
	// fields are the invalid fields of the object.
	fields field.ErrorList
	// failed is true if the author of the tree did not mean one of the errors as an answer.
	failed bool
}

func (f *admissionErrors) add(err error) {
	switch err := err.(type) {
	case *denial:
		if err.fields != nil {
			f.fields = append(f.fields, err.fields...)
			return
		}
		f.addStatus(err.Status())
	case apierrs.APIStatus:
		f.addStatus(err.Status())
		f.failed = true
	case *field.Error:
		if err == nil {
			// A nil pointer has no field to name.
			f.failed = true
			return
		}
		f.fields = append(f.fields, err)
	case interface{ Errors() []error }:
		f.addAll(err.Errors())
	case interface{ Unwrap() []error }:
		f.addAll(err.Unwrap())
	case interface{ Unwrap() error }:
		if cause := err.Unwrap(); cause != nil {
			f.add(cause)
			return
		}
		f.failed = true
	default:
		// ErrQuiet says nothing about the request, only how to treat the other errors.
		f.failed = f.failed || err != ErrQuiet
	}
}

func (f *admissionErrors) addAll(errs []error) {
	for _, err := range errs {
		f.add(err)
	}
}

func (f *admissionErrors) addStatus(status metav1.Status) {
	if f.status != nil {
		return
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	f.status = &status
}

// intentional reports whether the author denied the request and nothing failed.
func (f *admissionErrors) intentional() bool {
	return !f.failed && (f.status != nil || len(f.fields) > 0)
}

// answer returns the status for a request that ended with err. kind and name are those of the object.
func (f *admissionErrors) answer(err error, kind schema.GroupKind, name string) *metav1.Status {
	switch {
	case f.status != nil:
		return f.status
	case len(f.fields) > 0:
		return new(apierrs.NewInvalid(kind, name, f.fields).Status())
	default:
		return &metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	}
}

// Warn adds a warning to the admission response, whether the request is allowed or not. Clients such as kubectl print
// it. Equal texts are added once. Control characters, such as line ends, become spaces.
//
// The API server may truncate texts of more than 256 characters, and drops texts beyond 4096 characters in all. Outside
// a webhook Warn does nothing. Warn may be called concurrently.
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

// warningText returns text as an HTTP header can hold it, because the API server drops other warnings. Invalid UTF-8 is
// replaced too.
func warningText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// Deny returns an error that refuses an admission request as Forbidden, with the formatted message. For a
// ResourceReconciler it is an ordinary error.
func Deny(format string, args ...any) error {
	return &denial{StatusError: &apierrs.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: fmt.Sprintf(format, args...),
	}}}
}

// InvalidFields returns an error that refuses an admission request as Invalid, with a cause for each of the field
// errors. It returns nil if there are no field errors. For a ResourceReconciler it is an ordinary error.
//
// A node may also return field errors directly: the webhook answers in the same way.
func InvalidFields(ctx context.Context, resource client.Object, fields field.ErrorList) error {
	fields = slices.DeleteFunc(slices.Clone(fields), func(err *field.Error) bool { return err == nil })
	if len(fields) == 0 {
		return nil
	}
	kind, name := identify(ctx, resource)
	return &denial{StatusError: apierrs.NewInvalid(kind, name, fields), fields: fields}
}

// identify returns the kind and name of resource for error texts.
func identify(ctx context.Context, resource client.Object) (schema.GroupKind, string) {
	s := contextOf(ctx)
	if gotype.IsNil(resource) {
		return schema.GroupKind{}, s.request.Name
	}
	name := resource.GetName()
	if name == "" && resource.GetGenerateName() != "" {
		name = resource.GetGenerateName() + "*"
	}
	gvk := resource.GetObjectKind().GroupVersionKind()
	if gvk.Empty() && !gotype.IsNil(s.config.Client) {
		gvk = kindOf(s.config.Client, resource)
	}
	if gvk.Empty() {
		gvk.Kind = typeName(resource)
	}
	return gvk.GroupKind(), name
}

// RetrieveOldResource returns the old object of an update or delete request. Its defaults are filled in, as in the new
// object, so that the two can be compared. In a create or connect request, and outside a webhook, it returns nil. Each
// call returns a new copy.
//
// T is the type of the resource in the calling node, or another type that the object can be decoded into.
func RetrieveOldResource[T client.Object](ctx context.Context) (T, error) {
	var none T
	s := contextOf(ctx)
	if s.admissionRequest == nil || len(s.admissionRequest.OldObject.Raw) == 0 {
		return none, nil
	}
	old, ok := s.resourceType.(T)
	if ok && !gotype.IsNil(old) {
		old = copyOf(old)
	} else if old = defaultType(none); gotype.IsNil(old) {
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
