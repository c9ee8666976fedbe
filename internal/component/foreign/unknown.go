package foreign

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownError says why the use of a type cannot be found out. For the caller it is a use, not an error, see
// [unknownUse].
type unknownError struct {
	// reason is a stable text for people.
	reason string
	// obstacle is why a fence could not be proven, if the next attempt would fail for the same reason.
	obstacle string
	// fence says that creation cannot be fenced off.
	fence bool
	// unserved says that the API server does not know the type, which may mean that it is gone.
	unserved bool
}

func (e *unknownError) Error() string { return e.reason }

// unknownUse returns a use with the reason instead of an [unknownError].
func unknownUse(use plan.Use, err error) (plan.Use, error) {
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		return plan.Use{State: plan.ForeignUnknown, Reason: unknown.reason, Unfenced: unknown.fence}, nil
	}
	if err != nil {
		return plan.Use{}, err
	}
	return use, nil
}

// explain returns err as an [unknownError] if it is an answer of the API server that will be the same next time.
func explain(err error, what string) error {
	if reason := stableReason(err); reason != "" {
		return &unknownError{reason: what + ": " + reason, unserved: isUnserved(err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// explainFence is like explain for a write that the fence needs. The reason has the words of a policy or a webhook that
// refuses it: they may tell what helps.
func explainFence(err error, what string) error {
	explained := explain(err, what)
	if unknown, ok := errors.AsType[*unknownError](explained); ok {
		unknown.fence = true
		if words := refusalWords(err); words != "" {
			unknown.reason = what + ": " + words
		}
	}
	return explained
}

// maxWords is how much is quoted of a refusal, in bytes.
const maxWords = 300

var (
	policyRefusal  = regexp.MustCompile(`(?s)(ValidatingAdmissionPolicy '[^']{1,253}').*? denied request: (.*)`)
	webhookRefusal = regexp.MustCompile(`(?s)admission (webhook "[^"]{1,253}") denied the request: (.*)`)
)

// refusalWords are who refuses a request at admission, and why, in one line. They are empty for any other error.
func refusalWords(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	text := status.Status().Message
	for _, refusal := range []*regexp.Regexp{policyRefusal, webhookRefusal} {
		if match := refusal.FindStringSubmatch(text); match != nil {
			words := strings.Join(strings.FieldsFunc(match[2], isSpaceOrControl), " ")
			return message.Truncate("refused by the "+match[1]+": "+words, maxWords)
		}
	}
	return ""
}

func isSpaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// stableReason describes the answer of an API server in a text that is the same each time; the text of the answer may
// contain addresses. It is empty if there is no answer, or if the next answer may differ.
func stableReason(err error) string {
	if isUnserved(err) {
		return "the type is not served"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	switch reason := status.Status().Reason; reason {
	case metav1.StatusReasonTooManyRequests, metav1.StatusReasonServerTimeout, metav1.StatusReasonConflict,
		metav1.StatusReasonExpired:
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

// isUnserved reports whether the API server does not know the type of the request.
func isUnserved(err error) bool {
	return err != nil && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err))
}
