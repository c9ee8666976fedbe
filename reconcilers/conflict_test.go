package reconcilers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestApplyConflictError(t *testing.T) {
	cause := func(message, field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: field}
	}
	answer := apierrs.NewApplyConflict([]metav1.StatusCause{
		cause(`conflict with "kubectl" with subresource "scale" using apps/v1 at 2024-01-01T00:00:00Z`, ".spec.replicas"),
		cause(`conflict with "a \"b\""`, ".data.z"),
		cause(`conflict with "a \"b\""`, ".data.a"),
		cause(`conflict with "a \"b\""`, ".data.a"),
		cause(`other`, ".data.b"),
		{Type: metav1.CauseTypeForbidden, Field: ".data.c"},
	}, "of no matter")
	err := reconcilers.NewApplyConflictError("ConfigMap a/b", fmt.Errorf("wrapped: %w", answer))
	const want = `fields of ConfigMap a/b are managed by others: ` +
		`.data.a by "a \"b\"", .data.z by "a \"b\"", .spec.replicas by "kubectl", .data.b by "other"`
	if err == nil || err.Error() != want {
		t.Errorf("returned %v, want %s", err, want)
	}
	if !apierrs.IsConflict(err) || !errors.Is(err, answer) {
		t.Errorf("the error %v does not unwrap to the answer, want a conflict and %v", err, answer)
	}
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, other := range map[string]error{
		"none":           nil,
		"another":        errBoom,
		"stale":          apierrs.NewConflict(resource, "b", errBoom),
		"without detail": &apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict}},
	} {
		if got := reconcilers.NewApplyConflictError("", other); got != nil {
			t.Errorf("%s: returned %v, want nil", name, got)
		}
	}
}
