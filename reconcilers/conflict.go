package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// ConflictPolicy says what becomes of a field that an [ApplyingObjectManager] wants, and that another field manager owns and has
// another value for.
type ConflictPolicy string

const (
	// ForceConflicts takes the field from the other manager. Kubernetes advises it for controllers. It is the default.
	ForceConflicts ConflictPolicy = "Force"
	// FailOnConflicts applies nothing, and returns an [ApplyConflictError].
	FailOnConflicts ConflictPolicy = "Fail"
	// LeaveConflicts leaves the field to the other manager, until that gives it up, and applies the rest.
	LeaveConflicts ConflictPolicy = "Leave"
)

// ApplyConflictError is returned for an object some of whose fields others own. It unwraps to the error of the API server. Its text
// is stable.
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
			conflict.Conflicts = append(conflict.Conflicts, ApplyConflict{Manager: managerIn(cause.Message), Field: cause.Field})
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

// without returns wanted without the fields that others own, and false if there is one among them that cannot be found in it.
func (e *ApplyConflictError) without(wanted configuration) (configuration, bool) {
	rest := configuration(runtime.DeepCopyJSON(wanted))
	for _, conflict := range e.Conflicts {
		if !removeField(rest, conflict.Field) {
			return nil, false
		}
	}
	return rest, true
}

// removeField removes the field at path, as the API server writes paths, and the maps that this leaves empty. It walks the members
// that there are: their names may hold what separates names in a path.
func removeField(members map[string]any, path string) bool {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		rest, ok := strings.CutPrefix(path, "."+name)
		if !ok {
			continue
		}
		if rest == "" {
			delete(members, name)
			return true
		}
		if !removeFrom(members[name], rest) {
			continue
		}
		if inner, ok := members[name].(map[string]any); ok && len(inner) == 0 {
			delete(members, name)
		}
		return true
	}
	return false
}

func removeFrom(v any, path string) bool {
	switch v := v.(type) {
	case map[string]any:
		return removeField(v, path)
	case []any:
		for _, item := range v {
			rest, ok := cutElement(path, item)
			if ok && rest != "" && removeFrom(item, rest) {
				return true
			}
		}
	}
	return false
}

// cutElement cuts from the front of path the element [name="web",port=80], if item is of these keys. A key that item lacks has its
// default, which only the API server knows.
func cutElement(path string, item any) (rest string, ok bool) {
	members, isMap := item.(map[string]any)
	rest, ok = strings.CutPrefix(path, "[")
	if !ok || !isMap {
		return "", false
	}
	found := false
	for {
		name, text, ok := strings.Cut(rest, "=")
		if !ok {
			return "", false
		}
		end := strings.IndexAny(text, ",]")
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			end = len(quoted)
		}
		if end < 0 || end >= len(text) {
			return "", false
		}
		if member, ok := members[name]; ok {
			if value.ToString(value.NewValueInterface(member)) != text[:end] {
				return "", false
			}
			found = true
		}
		rest = text[end+1:]
		if text[end] == ']' {
			return rest, found
		}
	}
}

// asStale returns err as the conflict that it is if it says that the object of that name is not the one that was meant: what was
// read is older than what is there.
func asStale(err error) error {
	var status apierrs.APIStatus
	if !apierrs.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	details := status.Status().Details
	for _, cause := range details.Causes {
		if cause.Field == "metadata.uid" {
			return apierrs.NewConflict(schema.GroupResource{Group: details.Group, Resource: details.Kind}, details.Name,
				fmt.Errorf("another object has taken its name: %w", err))
		}
	}
	return err
}
