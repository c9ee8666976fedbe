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

// ConflictPolicy says what an [ApplyingObjectManager] does with a desired field that another field manager owns and has
// set to another value.
type ConflictPolicy string

const (
	// ForceConflicts takes the field from the other manager. Kubernetes recommends it for controllers. It is the
	// default.
	ForceConflicts ConflictPolicy = "Force"
	// FailOnConflicts applies nothing, and returns an [ApplyConflictError].
	FailOnConflicts ConflictPolicy = "Fail"
	// LeaveConflicts applies the other fields. The conflicting field stays with the other manager until that manager
	// gives it up.
	LeaveConflicts ConflictPolicy = "Leave"
)

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
		fmt.Fprintf(&text, "%s by %q", conflict.Field, conflict.Manager)
	}
	return text.String()
}

func (e *ApplyConflictError) Unwrap() error { return e.Err }

// newApplyConflictError returns the field conflicts in err, or nil if err is another error.
func newApplyConflictError(object string, err error) *ApplyConflictError {
	var status apierrs.APIStatus
	if !apierrs.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	conflict := &ApplyConflictError{Object: object, Err: err}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found := ApplyConflict{Manager: managerOf(cause.Message), Field: cause.Field}
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

// managerOf returns the manager that the message of a cause names. The message may also have a time, which is left out.
func managerOf(message string) string {
	name := strings.TrimPrefix(message, "conflict with ")
	if quoted, err := strconv.QuotedPrefix(name); err == nil {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			return unquoted
		}
	}
	return name
}

// fields returns the paths of the conflicting fields.
func (e *ApplyConflictError) fields() []string {
	var fields []string
	for _, conflict := range e.Conflicts {
		fields = append(fields, conflict.Field)
	}
	return fields
}
