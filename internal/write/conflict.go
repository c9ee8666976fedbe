package write

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FieldConflict is a field that another manager owns with another value.
type FieldConflict struct {
	// Manager is the name of the owner.
	Manager string
	// Field is the path of the field, such as .spec.replicas.
	Field string
}

func (c FieldConflict) String() string { return fmt.Sprintf("%s by %q", c.Field, c.Manager) }

// FieldConflicts returns the fields because of which the API server refused an apply, sorted by manager and field.
// There are none in another error.
func FieldConflicts(err error) []FieldConflict {
	var status apierrs.APIStatus
	if !apierrs.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var found []FieldConflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found = append(found, FieldConflict{Manager: managerOf(cause.Message), Field: cause.Field})
		}
	}
	slices.SortFunc(found, func(a, b FieldConflict) int {
		return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Field, b.Field))
	})
	return slices.Compact(found)
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

// asConflict returns err as a conflict if err says that the object of that name has another UID than the request. Any
// other error is returned unchanged.
func asConflict(err error) error {
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
