package foreign

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownError says why the use of a type cannot be found out. It is no failure of the call: [settle] makes a use of it.
type unknownError struct {
	// reason is for people, and stable.
	reason string
	// obstacle is what the proof of a fence failed for, as far as the next attempt would fail for the same.
	obstacle string
	// unserved: the API server does not know the type, which may mean that it is gone.
	unserved bool
}

func (e *unknownError) Error() string { return e.reason }

// settle makes a use of an error that says that it is unknown.
func settle(use plan.Use, err error) (plan.Use, error) {
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		return plan.Use{State: plan.ForeignUnknown, Reason: unknown.reason}, nil
	}
	if err != nil {
		return plan.Use{}, err
	}
	return use, nil
}

// explain returns err as the reason why something is unknown, if the API server meant what it said, rather than being busy or
// out of reach.
func explain(err error, what string) error {
	if words := refusal(err); words != "" {
		return &unknownError{reason: what + ": " + words, unserved: isUnserved(err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// refusal puts the answer of an API server in stable words: its own ones may hold addresses. It is empty if there is no
// answer, or none that would be given again.
func refusal(err error) string {
	if isUnserved(err) {
		return "the type is not served"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	switch reason := status.Status().Reason; reason {
	case metav1.StatusReasonTooManyRequests, metav1.StatusReasonServerTimeout, metav1.StatusReasonConflict, metav1.StatusReasonExpired:
		return ""
	case metav1.StatusReasonUnknown:
		// Webhooks may refuse without a reason.
		return fmt.Sprintf("status %d", status.Status().Code)
	case metav1.StatusReasonForbidden:
		return "forbidden"
	case metav1.StatusReasonServiceUnavailable:
		return "the server behind it is not available"
	case metav1.StatusReasonTimeout:
		return "the server behind it does not answer in time"
	case metav1.StatusReasonInternalError:
		return "the server failed"
	default:
		return string(reason)
	}
}

// isUnserved tells whether the API server does not know the type asked for.
func isUnserved(err error) bool {
	return err != nil && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err))
}
