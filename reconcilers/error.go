package reconcilers

import (
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Error is the error of a root for an error of one of its nodes. It adds the path of the node, the object, and a class.
// It unwraps to the error that the node returned. Only the root makes an Error; nodes return errors unchanged.
//
// Its text is the same in each request that fails in the same way, unless the text of the cause changes. It contains no
// time and no generated name.
type Error struct {
	// Path is the path of the node that failed, see [RetrievePath].
	Path string
	// Object is the object that the node handled. It has the kind, and the namespace and name if they are known and not
	// generated. It may be empty.
	Object string
	// Class says how to react to the error.
	Class Class
	// Err is the error that the node returned. It is never nil.
	Err error
}

func (e *Error) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Path, e.Object, e.Err)
}

func (e *Error) Unwrap() error {
	return e.Err
}

// Class says how to react to an error.
type Class string

const (
	// ClassRetry means that a retry may succeed. It is the class of all errors without another class.
	ClassRetry Class = "Retry"
	// ClassWait means that nothing failed, but the node waits for something.
	ClassWait Class = "Wait"
	// ClassTerminal means that a retry with the same input fails in the same way.
	ClassTerminal Class = "Terminal"
	// ClassConflict means that the object changed after it was read. A retry with a fresh read should follow at once.
	ClassConflict Class = "Conflict"
	// ClassForbidden means that the identity of the API request lacks a permission.
	ClassForbidden Class = "Forbidden"
	// ClassNotOurs means that the object, or a field of it, already exists and has another owner.
	ClassNotOurs Class = "NotOurs"
)

// Classify returns the class of err. If err contains an [Error], it is the class of that. Otherwise the class follows
// from the sentinel errors of this package, from controller-runtime's terminal error, and from the reason of the API
// server.
func Classify(err error) Class {
	var located *Error
	var fields *ApplyConflictError
	switch {
	case errors.As(err, &located):
		return located.Class
	case errors.Is(err, ErrDurable), errors.Is(err, reconcile.TerminalError(nil)):
		return ClassTerminal
	case errors.Is(err, ErrHaltSubReconcilers):
		return ClassWait
	case apierrs.IsAlreadyExists(err), errors.As(err, &fields):
		return ClassNotOurs
	case apierrs.IsConflict(err):
		return ClassConflict
	case apierrs.IsForbidden(err), apierrs.IsUnauthorized(err):
		return ClassForbidden
	case apierrs.IsInvalid(err), apierrs.IsBadRequest(err), apierrs.IsMethodNotSupported(err):
		return ClassTerminal
	}
	return ClassRetry
}

// locateError wraps err in an [Error] if the request state has its path.
func locateError(p *requestState, err error) error {
	f, ok := p.locate(err)
	var located *Error
	if !ok || errors.As(err, &located) {
		return err
	}
	return &Error{Path: f.path, Object: f.object, Class: f.class, Err: err}
}
