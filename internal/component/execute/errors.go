package execute

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/served"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errNoUID            = errors.New("the plan does not say which object of that name it means")
	errNoManifest       = errors.New("there is no manifest for it")
	errNoGuard          = errors.New("there is no guard to check whether others use its types")
	errNoPattern        = errors.New("the pattern is not known")
	errPurgeOfContainer = errors.New("types and namespaces are not purged")
	errUnknownAction    = errors.New("the action is not known")
	errWithheld         = errors.New("the details are withheld, as they may quote what is secret")

	// constantErrors have texts that quote nothing.
	constantErrors = []error{
		errNoUID, errNoManifest, errNoGuard, errNoPattern, errPurgeOfContainer, errUnknownAction, manifest.ErrChanged,
	}
)

// ExistsError says that an object that was to be created exists already.
type ExistsError struct{ Key plan.Key }

func (e *ExistsError) Error() string { return e.Key.String() + " exists already" }

// StaleError says that the object of an operation does not exist any more.
type StaleError struct {
	// Replaced says that there is another object of that name now.
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
	// Ownership says to whom the object belongs.
	Ownership plan.Ownership
	// Claim says so in words that follow "it".
	Claim string
}

func (e *OwnerError) Error() string {
	if e.Ownership != plan.Foreign {
		return "it does not belong to the component"
	}
	return "it " + e.Claim
}

// WaitError says that an operation has to wait: it can be done once the cluster has changed.
type WaitError struct {
	// Namespace is the namespace that is being deleted; empty if the operation waits for something else.
	Namespace string
	// TypeMissing says that the API server does not serve the type.
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

// NamespaceError says that the namespace of an object that is to be created does not exist.
type NamespaceError struct {
	Namespace string
	// Err is what the API server answered.
	Err error
}

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("the namespace %s does not exist", e.Namespace)
}

func (e *NamespaceError) Unwrap() error { return e.Err }

// ConnectionError says that there was no answer to a request. It is not known whether the request had an effect.
type ConnectionError struct {
	// Err is what went wrong. Its text may differ each time, because it may contain the port of the client.
	Err error
}

func (e *ConnectionError) Error() string {
	cause := e.Err
	for {
		var request *url.Error
		var connection *net.OpError
		if errors.As(cause, &request) && request.Err != nil {
			cause = request.Err
		} else if errors.As(cause, &connection) && connection.Err != nil {
			cause = connection.Err
		} else {
			return "there was no answer from the API server: " + cause.Error()
		}
	}
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// confidential reports whether an error about the object may contain a secret.
func (e *Executor) confidential(key plan.Key) bool {
	object := e.Objects[key]
	return key.GroupKind() == kinds.Secret || object != nil && object.Confidential
}

func isStale(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale)
}

// explain converts err to a type of this package if it has a meaning for the caller. Namespace is the namespace of the
// object.
func explain(err error, namespace string) error {
	if hasOwnText(err) {
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

// hasOwnText reports whether err is or wraps an error of this package that quotes nothing but names.
func hasOwnText(err error) bool {
	var exists *ExistsError
	var stale *StaleError
	var owner *OwnerError
	var wait *WaitError
	var namespace *NamespaceError
	return errors.As(err, &exists) || errors.As(err, &stale) || errors.As(err, &owner) || errors.As(err, &wait) ||
		errors.As(err, &namespace)
}

// withhold returns err without anything that may quote the content of an object. The reason and the names of fields
// stay of an answer of the API server.
func withhold(err error) error {
	var status apierrs.APIStatus
	var connection *ConnectionError
	switch {
	case hasOwnText(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &status):
		return withheldStatus(status.Status())
	case errors.As(err, &connection), slices.Contains(constantErrors, err):
		return err
	}
	return errWithheld
}

// missingPermission is the answer of the authorizer, which knows a user and names, and no content.
var missingPermission = regexp.MustCompile(`^[\w.]+ (?:"[\w.-]*" )?is forbidden: User "[\w.:@/-]{1,300}" ` +
	`cannot \w+ resource "[\w./-]{1,200}" in API group "[\w.-]{0,253}" ` +
	`(?:in the namespace "[\w-]{1,63}"|at the cluster scope)`)

// refusing is what the API server says of a webhook or an admission policy that refuses, without its reasons.
var refusing = regexp.MustCompile(`^(?:Internal error occurred: )?(?:failed calling|admission) webhook ` +
	`"[\w.-]{1,253}"(?: denied the request)?` +
	`|^(?:[\w.]+ (?:"[\w.-]*" )?is forbidden: )?(?:ValidatingAdmissionPolicy|policy) ['"][\w.-]{1,253}['"]` +
	`(?: with binding '[\w.-]{1,253}')? denied request`)

var unknownField = regexp.MustCompile(`unknown field "[\w.\[\]]{1,100}"`)

// withheldStatus is status without its message and the messages of its causes.
func withheldStatus(status metav1.Status) error {
	message := string(status.Reason)
	// The name of a field is not secret.
	unknown := unknownField.FindAllString(status.Message, -1)
	refuser := refusing.FindString(status.Message)
	permission := missingPermission.FindString(status.Message)
	if message == "" {
		message = fmt.Sprintf("status %d", status.Code)
	}
	if refuser != "" {
		message = refuser
	}
	if d := status.Details; d != nil {
		details := metav1.StatusDetails{
			Name: d.Name, Group: d.Group, Kind: d.Kind, UID: d.UID, RetryAfterSeconds: d.RetryAfterSeconds,
		}
		var fields []string
		for _, cause := range d.Causes {
			details.Causes = append(details.Causes, metav1.StatusCause{Type: cause.Type, Field: cause.Field})
			if cause.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, cause.Type))
			}
		}
		slices.Sort(fields)
		if fields = slices.Compact(fields); len(fields) > 0 {
			message += ": " + strings.Join(fields, ", ")
		}
		status.Details = &details
	}
	status.Message = message + "; " + errWithheld.Error()
	if status.Reason == metav1.StatusReasonBadRequest && len(unknown) > 0 {
		status.Message = strings.Join(unknown, ", ")
	}
	if status.Reason == metav1.StatusReasonForbidden && permission != "" {
		status.Message = permission
	}
	return &apierrs.StatusError{ErrStatus: status}
}
