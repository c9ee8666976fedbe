package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConflictPolicy says what becomes of a field that an [ApplyingObjectManager] wants, and that another field manager
// owns and has another value for.
type ConflictPolicy string

const (
	// ForceConflicts takes the field from the other manager. Kubernetes advises it for controllers. It is the default.
	ForceConflicts ConflictPolicy = "Force"
	// FailOnConflicts applies nothing, and returns an [ApplyConflictError].
	FailOnConflicts ConflictPolicy = "Fail"
	// LeaveConflicts leaves the field to the other manager, until that gives it up, and applies the rest.
	LeaveConflicts ConflictPolicy = "Leave"
)

// ApplyConflictError is returned for an object some of whose fields others own. It unwraps to the error of the API
// server. Its text is stable.
type ApplyConflictError struct {
	// Object is the object by kind, namespace and name.
	Object string
	// Conflicts are the fields, sorted by manager and field.
	Conflicts []ApplyConflict
	// Err is what the API server answered.
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
		fmt.Fprintf(&text, "%s by %q", conflict.Field, conflict.Manager)
	}
	return text.String()
}

func (e *ApplyConflictError) Unwrap() error { return e.Err }

// newApplyConflictError returns the conflicts that err is about, nil if it is about something else.
func newApplyConflictError(object string, err error) *ApplyConflictError {
	var status apierrs.APIStatus
	if !apierrs.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	conflict := &ApplyConflictError{Object: object, Err: err}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found := ApplyConflict{Manager: managerIn(cause.Message), Field: cause.Field}
			conflict.Conflicts = append(conflict.Conflicts, found)
		}
	}
	if len(conflict.Conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflict.Conflicts, func(a, b ApplyConflict) int {
		return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Field, b.Field))
	})
	conflict.Conflicts = slices.Compact(conflict.Conflicts)
	return conflict
}

// managerIn finds the manager that the message of a cause names. The message says when it wrote too.
func managerIn(message string) string {
	name := strings.TrimPrefix(message, "conflict with ")
	if quoted, err := strconv.QuotedPrefix(name); err == nil {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			return unquoted
		}
	}
	return name
}

// fields are the paths of the fields that others own.
func (e *ApplyConflictError) fields() []string {
	var fields []string
	for _, conflict := range e.Conflicts {
		fields = append(fields, conflict.Field)
	}
	return fields
}
