package execute

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errNoUID         = errors.New("the plan does not say which object of that name it means")
	errNoManifest    = errors.New("there is no manifest for it")
	errNoGuard       = errors.New("there is nobody to tell whether others use its types")
	errNoPattern     = errors.New("the pattern is not known")
	errPurgeOfType   = errors.New("types are not purged")
	errUnknownAction = errors.New("nobody knows how")
	errWithheld      = errors.New("the details are withheld, as they may quote what is secret")
)

// ExistsError says that an object that was to be created exists already.
type ExistsError struct{ Key plan.Key }

func (e *ExistsError) Error() string { return e.Key.String() + " exists already" }

// StaleError says that the object that an operation is about is not there any more.
type StaleError struct {
	Key plan.Key
	// Replaced: there is another object of that name now.
	Replaced bool
}

func (e *StaleError) Error() string {
	if e.Replaced {
		return "another object has taken its place"
	}
	return "it does not exist any more"
}

// OwnerError says that an object does not belong to the component, and may not be taken over.
type OwnerError struct {
	Key plan.Key
	// Ownership is whose it is.
	Ownership plan.Ownership
	// Owner is the owner in clear text, without its UID; empty if not known.
	Owner string
}

func (e *OwnerError) Error() string {
	switch {
	case e.Ownership != plan.Foreign:
		return "it does not belong to the component"
	case e.Owner == "":
		return "it belongs to another component"
	}
	return "it belongs to " + e.Owner
}

// WaitError says that nothing is wrong with an operation but the time: it can be done once the cluster has changed.
type WaitError struct {
	// Namespace is the one that is being deleted; empty if something else is waited for.
	Namespace string
	// TypeMissing: the API server does not serve the type.
	TypeMissing bool
	// Err is what the API server answered.
	Err error
}

func (e *WaitError) Error() string {
	if e.TypeMissing {
		return "the API server does not serve the type"
	}
	return fmt.Sprintf("the namespace %s is being deleted", e.Namespace)
}

func (e *WaitError) Unwrap() error { return e.Err }

// NamespaceError says that the namespace that an object is to be created in does not exist.
type NamespaceError struct {
	Namespace string
	// Err is what the API server answered.
	Err error
}

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("the namespace %s does not exist", e.Namespace)
}

func (e *NamespaceError) Unwrap() error { return e.Err }

// ConnectionError says that there was no answer to a request. Whether the request was carried out is not known.
type ConnectionError struct {
	// Err is what went wrong. Its text may differ each time: it may name the port of the client.
	Err error
}

func (e *ConnectionError) Error() string {
	cause := e.Err
	for {
		var request *url.Error
		var connection *net.OpError
		switch {
		case errors.As(cause, &request) && request.Err != nil:
			cause = request.Err
		case errors.As(cause, &connection) && connection.Err != nil:
			cause = connection.Err
		default:
			return "there was no answer from the API server: " + cause.Error()
		}
	}
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// failure says what could not be done, and why, in words that are the same each time and tell no secret.
func (e *Executor) failure(op plan.Operation, err error) error {
	if op.Action == plan.ActionCheck && op.Pattern >= 0 {
		what := fmt.Sprintf("the types of pattern %d", op.Pattern)
		if op.Pattern < len(e.Patterns) {
			p := e.Patterns[op.Pattern]
			what = strings.TrimSuffix(p.Kind+"."+p.Group, ".")
		}
		return fmt.Errorf("unable to find out who uses %s: %w", what, explain(err, ""))
	}
	err = explain(err, op.Key.Namespace)
	if e.confidential(op.Key) {
		err = withhold(err)
	}
	switch op.Action {
	case plan.ActionCheck:
		return fmt.Errorf("unable to find out who uses the types of %s: %w", op.Key, err)
	case plan.ActionRecreate:
		return fmt.Errorf("unable to delete %s to create it anew: %w", op.Key, err)
	case plan.ActionDeleteType:
		return fmt.Errorf("unable to delete %s: %w", op.Key, err)
	}
	return fmt.Errorf("unable to %s %s: %w", op.Action, op.Key, err)
}

// confidential tells whether what an error says about the object may be secret.
func (e *Executor) confidential(key plan.Key) bool {
	if key.Group == "" && key.Kind == "Secret" {
		return true
	}
	object := e.Objects[key]
	return object != nil && object.Confidential
}

func isStale(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale)
}

// explain gives errors that have a meaning to the caller a type. The namespace is that of the object.
func explain(err error, namespace string) error {
	if known(err) {
		return err
	}
	if served.IsNotServed(err) {
		return &WaitError{TypeMissing: true, Err: err}
	}
	if apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return &WaitError{Namespace: namespace, Err: err}
	}
	var request *url.Error
	var connection *net.OpError
	if errors.As(err, &request) || errors.As(err, &connection) {
		return &ConnectionError{Err: err}
	}
	return err
}

// known tells whether err is, or wraps, one of this package, whose text is made here.
func known(err error) bool {
	var exists *ExistsError
	var stale *StaleError
	var owner *OwnerError
	var wait *WaitError
	var namespace *NamespaceError
	return errors.As(err, &exists) || errors.As(err, &stale) || errors.As(err, &owner) || errors.As(err, &wait) || errors.As(err, &namespace)
}

// withhold returns err without anything that may quote the content of an object: of an answer of the API server, the reason and
// the names of fields are left.
func withhold(err error) error {
	var status apierrs.APIStatus
	switch {
	case known(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &status):
		return masked(status.Status())
	}
	var connection *ConnectionError
	if errors.As(err, &connection) || slices.Contains(ownErrors, err) {
		return err
	}
	return errWithheld
}

var ownErrors = []error{errNoUID, errNoManifest, errNoGuard, errNoPattern, errPurgeOfType, errUnknownAction, manifest.ErrChanged}

// masked is status with another message.
func masked(status metav1.Status) error {
	message := string(status.Reason)
	if message == "" {
		message = fmt.Sprintf("status %d", status.Code)
	}
	if details := status.Details; details != nil {
		details = &metav1.StatusDetails{
			Name: details.Name, Group: details.Group, Kind: details.Kind, UID: details.UID, RetryAfterSeconds: details.RetryAfterSeconds,
		}
		var fields []string
		for _, cause := range status.Details.Causes {
			details.Causes = append(details.Causes, metav1.StatusCause{Type: cause.Type, Field: cause.Field})
			if cause.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, cause.Type))
			}
		}
		slices.Sort(fields)
		if fields = slices.Compact(fields); len(fields) > 0 {
			message += ": " + strings.Join(fields, ", ")
		}
		status.Details = details
	}
	status.Message = message + "; " + errWithheld.Error()
	return &apierrs.StatusError{ErrStatus: status}
}
