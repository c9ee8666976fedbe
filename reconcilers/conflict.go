package reconcilers

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/write"
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
