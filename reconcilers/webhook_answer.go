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
)

// refusal is an error by which the author of a tree refuses a request, as opposed to one that something failed with.
type refusal struct {
	*apierrs.StatusError
	// fields are those that the status is made of, nil if it is not made of any.
	fields field.ErrorList
}

func (r *refusal) Unwrap() error {
	return r.StatusError
}

// refuse makes resp the answer to a request that ended with err.
func refuse(ctx context.Context, p *requestState, req admission.Request, resp *admission.Response, err error) {
	if isNil(err) {
		// A nil pointer that became an error on its way through an interface has no text.
		err = fmt.Errorf("the tree returned a %T that is nil", err)
	}
	found := findings{}
	found.add(err)
	if !isQuiet(err) && !found.meant() {
		logr.FromContextOrDiscard(ctx).Error(locateError(p, err), "reconcile error")
	}
	resp.Allowed = false
	if resp.Result == nil {
		resp.Result = found.answer(err, schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, req.Name)
	}
}

// meantAsAnswer tells whether err is no failure, but how a node below a webhook refuses the request.
func meantAsAnswer(ctx context.Context, err error) bool {
	if contextOf(ctx).admissionResponse == nil {
		return false
	}
	found := findings{}
	found.add(err)
	return found.meant()
}

// findings are the errors that an error joins, by what they mean for the answer of a webhook, in their order.
type findings struct {
	// statuses are answers to clients. Some may come from requests that nodes made.
	statuses []metav1.Status
	// refusals counts the statuses by which the author refuses.
	refusals int
	// fields are what is wrong with the object, and invalid the refusals that they are from, if they are from such.
	fields  field.ErrorList
	invalid []metav1.Status
	// bare is true if some of fields are not from a refusal.
	bare bool
	// failed is true if there was any other error.
	failed bool
}

func (f *findings) add(err error) {
	switch err := err.(type) {
	case *refusal:
		if err.fields != nil {
			f.fields = append(f.fields, err.fields...)
			f.invalid = append(f.invalid, err.Status())
			return
		}
		f.statuses = append(f.statuses, err.Status())
		f.refusals++
	case apierrs.APIStatus:
		f.statuses = append(f.statuses, err.Status())
	case *field.Error:
		if err == nil {
			// A nil pointer that became an error on its way through an interface.
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
		// The mark says how to treat the others, and nothing about the request.
		f.failed = f.failed || err != ErrQuiet
	}
}

func (f *findings) addAll(errs []error) {
	for _, err := range errs {
		f.add(err)
	}
}

// meant tells whether all there is are refusals by the author.
func (f *findings) meant() bool {
	return !f.failed && f.refusals == len(f.statuses) && len(f.statuses)+len(f.fields) > 0
}

// answer returns the status for the client whose request, for an object of that kind and name, ended with err.
func (f *findings) answer(err error, kind schema.GroupKind, name string) *metav1.Status {
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

// joinStatuses returns the first status, with the messages of all.
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
