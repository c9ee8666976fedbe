package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/internal/gotype"
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
		resp.Result = found.answer(err, schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, req.Name)
	}
}

// admissionErrors are the errors that an error joins, sorted by what they mean for the answer of a webhook.
type admissionErrors struct {
	// statuses are those of an API server. Some may be answers to requests of nodes.
	statuses []metav1.Status
	// denials counts the statuses by which the author denies the request.
	denials int
	// fields are the invalid fields of the object. invalid are the denials that they come from, if any.
	fields  field.ErrorList
	invalid []metav1.Status
	// bare is true if some of fields do not come from a denial.
	bare bool
	// failed is true if there was any other error.
	failed bool
}

func (f *admissionErrors) add(err error) {
	switch err := err.(type) {
	case *denial:
		if err.fields != nil {
			f.fields = append(f.fields, err.fields...)
			f.invalid = append(f.invalid, err.Status())
			return
		}
		f.statuses = append(f.statuses, err.Status())
		f.denials++
	case apierrs.APIStatus:
		f.statuses = append(f.statuses, err.Status())
	case *field.Error:
		if err == nil {
			// A nil pointer has no field to name.
			f.failed = true
			return
		}
		f.fields = append(f.fields, err)
		f.bare = true
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

// intentional reports whether the author denied the request and nothing failed.
func (f *admissionErrors) intentional() bool {
	return !f.failed && f.denials == len(f.statuses) && len(f.statuses)+len(f.fields) > 0
}

// answer returns the status for a request that ended with err. kind and name are those of the object.
func (f *admissionErrors) answer(err error, kind schema.GroupKind, name string) *metav1.Status {
	statuses := f.statuses
	switch {
	case len(f.fields) == 0, f.failed && len(statuses)+len(f.invalid) == 0:
	case len(f.invalid) == 1 && !f.bare:
		statuses = append(statuses, f.invalid[0])
	default:
		statuses = append(statuses, apierrs.NewInvalid(kind, name, f.fields).Status())
	}
	if len(statuses) == 0 {
		return &metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	}
	return joinStatuses(statuses)
}

// joinStatuses returns the first status, with the messages of all statuses.
func joinStatuses(statuses []metav1.Status) *metav1.Status {
	joined := statuses[0].DeepCopy()
	var messages []string
	for _, status := range statuses {
		if status.Message != "" && !slices.Contains(messages, status.Message) {
			messages = append(messages, status.Message)
		}
	}
	joined.Message = strings.Join(messages, "; ")
	if joined.Code == 0 {
		joined.Code = http.StatusInternalServerError
	}
	return joined
}
