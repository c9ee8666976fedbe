package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/write"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The errors with a special meaning. They are matched with errors.Is, so they may be wrapped and joined.
var (
	// ErrQuiet marks an error as expected. It stops the tree like any other error, but it is neither logged nor
	// recorded as an event. The root turns it into a requeue.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers keeps the nodes after the one that returns it from running, although nothing failed. The
	// generation counts as observed and the status is written. It is quiet.
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrHaltUntilEvent is ErrHaltSubReconcilers for a node that waits for an object that it watches or
	// tracks. The root does not retry because of it: the event of what is awaited brings the resource back. When joined
	// with other errors, it leaves the retry to them.
	ErrHaltUntilEvent = fmt.Errorf("wait for an event: %w", ErrHaltSubReconcilers)

	// ErrDurable marks an error that a retry will not fix. It is quiet and halts. The root does not retry because of
	// it. It runs again when something changes, or after a delay that a node asked for. When joined with other errors,
	// ErrDurable makes plain errors durable too. A joined error that is itself quiet or a halt, but not durable, still
	// asks for a retry.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// ErrSkipStatusUpdate keeps the root from writing the status in this request. It is not quiet. Join it with
	// ErrQuiet for a quiet error.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// OnlyReconcileChildStatus is returned by DesiredChild or DesiredChildren to leave the children as they are. They
	// are reflected on the parent, but not created, updated or deleted.
	//
	//lint:ignore ST1012 the name is part of the compatible vocabulary
	OnlyReconcileChildStatus = errors.New("skip reconciler create/update/delete behavior for the child resource, " +
		"while still reflecting the existing child's status on the reconciled resource")
)

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

func isHalt(err error) bool {
	return errors.Is(err, ErrHaltSubReconcilers)
}

// isOnlyHalt reports whether err is ErrHaltSubReconcilers, wrapped or joined with itself, and nothing else. ErrQuiet,
// ErrDurable, and a halt that is joined with another error are more than that.
func isOnlyHalt(err error) bool {
	if err == ErrHaltSubReconcilers {
		return true
	}
	wrapped := wrappedErrors(err)
	return len(wrapped) > 0 && !slices.ContainsFunc(wrapped, func(err error) bool { return !isOnlyHalt(err) })
}

// isDurable reports whether a retry is of no use: err contains ErrDurable, and no part of it asks for a retry.
// ErrDurable also counts for the plain errors that it is joined with.
func isDurable(err error) bool {
	return errors.Is(err, ErrDurable) && !wantsRetry(err)
}

// wantsRetry reports whether err, or an error in it, is quiet, not durable, and waits for no event.
func wantsRetry(err error) bool {
	switch {
	case err == ErrDurable, err == ErrHaltUntilEvent, !isQuiet(err):
		// The errors that ErrDurable joins are quiet, but they do not ask for a retry.
		return false
	case !errors.Is(err, ErrDurable) && !errors.Is(err, ErrHaltUntilEvent):
		return true
	default:
		return slices.ContainsFunc(wrappedErrors(err), wantsRetry)
	}
}

// hidesFailure reports whether err contains more than ErrQuiet and ErrSkipStatusUpdate, that is, whether something
// failed that a quiet error hides.
func hidesFailure(err error) bool {
	if wrapped := wrappedErrors(err); len(wrapped) > 0 {
		return slices.ContainsFunc(wrapped, hidesFailure)
	}
	return err != ErrQuiet && err != ErrSkipStatusUpdate
}

// wrappedErrors returns the errors that err wraps or joins, or none.
func wrappedErrors(err error) []error {
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		if wrapped := wrapper.Unwrap(); wrapped != nil {
			return []error{wrapped}
		}
	case interface{ Unwrap() []error }:
		return wrapper.Unwrap()
	case interface{ Errors() []error }:
		// The aggregates of the API machinery.
		return wrapper.Errors()
	}
	return nil
}

// Error is the error of a root for an error of one of its nodes. It adds the path of the node, the object, and a class.
// It unwraps to the error that the node returned. Only the root makes an Error; nodes return errors unchanged.
//
// Its text is the same in each request that fails in the same way, unless the text of the cause changes. It contains no
// time and no generated name.
type Error struct {
	// Path is the path of the node that failed, see [RetrievePath], without the indices of elements of sequences: the
	// names stay the same when a node is inserted. Only a node without a name has its index.
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
	case errors.Is(err, ErrHaltSubReconcilers), isKindNotServed(err):
		return ClassWait
	case apierrs.IsAlreadyExists(err), errors.As(err, &fields):
		return ClassNotOurs
	case apierrs.IsConflict(err):
		return ClassConflict
	case apierrs.IsForbidden(err), apierrs.IsUnauthorized(err):
		return ClassForbidden
	case apierrs.IsInvalid(err), apierrs.IsBadRequest(err), apierrs.IsMethodNotSupported(err),
		apierrs.IsRequestEntityTooLargeError(err):
		return ClassTerminal
	}
	return ClassRetry
}

// isRefusal reports whether err is an answer of the API server that a retry with the same input gets again, or would be
// if nobody grants a right or leaves a name.
func isRefusal(err error) bool {
	return apierrs.IsForbidden(err) || apierrs.IsAlreadyExists(err) || apierrs.IsInvalid(err) ||
		apierrs.IsBadRequest(err) || apierrs.IsRequestEntityTooLargeError(err)
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

// failure is an error at the node that met it first.
type failure struct {
	err    error
	path   string
	object string
	class  Class
}

// recordFailure records that err came up at the node of ctx while the node worked on object.
func recordFailure(ctx context.Context, object string, err error) {
	if err == nil {
		return
	}
	if s := contextOf(ctx).state; s != nil {
		s.fail(pathOf(ctx), object, Classify(err), err)
	}
}

// recordUnlocated is recordFailure for a node that runs others. It records err only if no node below did, because nodes
// of other packages may not record their errors.
func recordUnlocated(ctx context.Context, err error) {
	if err == nil {
		return
	}
	s := contextOf(ctx).state
	if s == nil {
		return
	}
	s.mu.Lock()
	_, located := s.locate(err)
	s.mu.Unlock()
	if !located {
		recordFailure(ctx, "", err)
	}
}

// fail records that err came up at a node while the node worked on object. The first record of an error counts, because
// the deepest node knows most.
func (s *requestState) fail(at *nodePath, object string, class Class, err error) {
	if s == nil || err == nil || !gotype.Comparable(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.failures {
		if known.err == err {
			return
		}
	}
	s.failures = append(s.failures, failure{err: err, path: at.text(), object: object, class: class})
}

// locate finds where err came up, or the first of the errors that it wraps or joins.
func (s *requestState) locate(err error) (failure, bool) {
	if s == nil || err == nil {
		return failure{}, false
	}
	if gotype.Comparable(err) {
		for _, f := range s.failures {
			if f.err == err {
				return f, true
			}
		}
	}
	for _, member := range wrappedErrors(err) {
		if f, ok := s.locate(member); ok {
			return f, true
		}
	}
	return failure{}, false
}

// ApplyConflictError is returned if other field managers own desired fields of an object. It unwraps to the error of
// the API server. Its text is the same for the same conflicts.
type ApplyConflictError struct {
	// Object has the kind, namespace and name of the object.
	Object string
	// Conflicts are the fields, sorted by manager and field.
	Conflicts []ApplyConflict
	// Err is the answer of the API server.
	Err error
}

// ApplyConflict is one field that another manager owns.
type ApplyConflict struct {
	// Manager is the name of the owner.
	Manager string
	// Field is the path of the field, such as .spec.replicas.
	Field string
}

func (e *ApplyConflictError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "fields of %s are managed by others: ", e.Object)
	for i, conflict := range e.Conflicts {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(write.FieldConflict(conflict).String())
	}
	return text.String()
}

func (e *ApplyConflictError) Unwrap() error { return e.Err }

// newApplyConflictError returns the field conflicts in err, or nil if err is another error.
func newApplyConflictError(object string, err error) *ApplyConflictError {
	fields := write.FieldConflicts(err)
	if len(fields) == 0 {
		return nil
	}
	return newApplyConflicts(object, fields, err)
}

func newApplyConflicts(object string, fields []write.FieldConflict, err error) *ApplyConflictError {
	conflict := &ApplyConflictError{Object: object, Err: err}
	for _, field := range fields {
		conflict.Conflicts = append(conflict.Conflicts, ApplyConflict(field))
	}
	return conflict
}
