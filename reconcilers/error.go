package reconcilers

import (
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Error is what a root returns for an error of one of its nodes: where it came up, about which object, and what may
// help. It unwraps to the error as the node returned it. Nodes return errors as they are; only the root adds this.
//
// Its text is stable: it has no time, no generated name and no order that changes from run to run, as far as the cause
// has none.
type Error struct {
	// Path is where in the tree the error came up, see [RetrievePath].
	Path string
	// Object is what the node dealt with: kind, and namespace and name where they are known and not generated. It may
	// be empty.
	Object string
	// Class says what may help.
	Class Class
	// Err is the error as the node returned it; never nil.
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

// Class says what may help against an error.
type Class string

const (
	// ClassRetry: another attempt may succeed. It is the class of whatever is not known better.
	ClassRetry Class = "Retry"
	// ClassWait: nothing failed, something has not happened yet.
	ClassWait Class = "Wait"
	// ClassTerminal: another attempt with the same input fails the same way.
	ClassTerminal Class = "Terminal"
	// ClassConflict: what was read is older than what is there. Another attempt, with a fresh read, is due at once.
	ClassConflict Class = "Conflict"
	// ClassForbidden: the identity that the request was made with may not do this.
	ClassForbidden Class = "Forbidden"
	// ClassNotOurs: an object of that name, or a field of the object, is there and belongs to somebody else.
	ClassNotOurs Class = "NotOurs"
)

// Classify says what may help against err: that of the innermost [Error] if it is one, else by the sentinels of this
// package, by controller-runtime's terminal error and by the reasons of the API server.
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

// locateError wraps err in an [Error] if the pass knows where it came up.
func locateError(p *requestState, err error) error {
	if err == nil {
		return nil
	}
	var located *Error
	if errors.As(err, &located) {
		return err
	}
	f, ok := p.locate(err)
	if !ok {
		return err
	}
	return &Error{Path: f.path, Object: f.object, Class: f.class, Err: err}
}
