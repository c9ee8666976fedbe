package fieldmanager

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
)

// asStatus returns an error as an API server answers it. Conflicts are in the order of their managers. Other errors are
// returned as they are.
func asStatus(err error) error {
	var conflicts merge.Conflicts
	if !errors.As(err, &conflicts) {
		return err
	}
	slices.SortStableFunc(conflicts, func(a, b merge.Conflict) int { return cmp.Compare(a.Manager, b.Manager) })
	causes := make([]metav1.StatusCause, len(conflicts))
	for i, conflict := range conflicts {
		causes[i] = metav1.StatusCause{
			Type:    metav1.CauseTypeFieldManagerConflict,
			Message: "conflict with " + describe(conflict.Manager),
			Field:   conflict.Path.String(),
		}
	}
	return apierrors.NewApplyConflict(causes, message(conflicts))
}

// message has the text of an API server.
func message(conflicts merge.Conflicts) string {
	if len(conflicts) == 1 {
		one := conflicts[0]
		return fmt.Sprintf("Apply failed with 1 conflict: conflict with %s: %v", describe(one.Manager), one.Path)
	}
	var lines []string
	for i, conflict := range conflicts {
		if i == 0 || conflict.Manager != conflicts[i-1].Manager {
			lines = append(lines, fmt.Sprintf("conflicts with %s:", describe(conflict.Manager)))
		}
		lines = append(lines, fmt.Sprintf("- %v", conflict.Path))
	}
	return fmt.Sprintf("Apply failed with %d conflicts: %s", len(conflicts), strings.Join(lines, "\n"))
}

func describe(o string) string {
	var entry metav1.ManagedFieldsEntry
	if err := json.Unmarshal([]byte(o), &entry); err != nil {
		return fmt.Sprintf("%q", o)
	}
	text := fmt.Sprintf("%q", entry.Manager)
	if entry.Subresource != "" {
		text += fmt.Sprintf(" with subresource %q", entry.Subresource)
	}
	if entry.Operation == metav1.ManagedFieldsOperationUpdate {
		text += " using " + entry.APIVersion
	}
	return text
}
