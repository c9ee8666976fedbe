package statusfield

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Severity orders conditions of one resource: of several, the one with the highest value says best what is wrong. One
// that is False comes before one that is Unknown. Of those that are False, the reason decides: a refusal of the API
// server, an object that is not ours, a failure, what has to come from elsewhere, what the tree itself waits for, and
// what is under way. Of those that are True, one with the reason Suspended comes first.
func Severity(condition *metav1.Condition) int {
	switch {
	case condition.Status == metav1.ConditionFalse:
		return isFalse + reasonSeverity(condition.Reason)
	case condition.Status != metav1.ConditionTrue:
		return isUnknown
	case condition.Reason == "Suspended":
		return isSuspended
	}
	return isTrue
}

// IsRefused reports whether a condition says that the API server refused an object, or that one is not ours.
func IsRefused(condition *metav1.Condition) bool { return Severity(condition) >= isFalse+isNotOurs }

const (
	isTrue = iota
	isSuspended
	isUnknown
	isFalse
)

const (
	isUnderWay = iota
	isWaiting
	isBlocked
	isFailing
	isNotOurs
	isRefused
)

// reasonSeverity grades the reasons of the nodes and of their parts: Owns, Runs, components, features. The reasons of
// an author, of which nothing is known, count as Blocked does.
func reasonSeverity(reason string) int {
	switch reason {
	case "Forbidden", "Invalid", "BadRequest", "RequestEntityTooLarge":
		return isRefused
	case "AlreadyExists", "NotOurs":
		return isNotOurs
	case "Failed", "Error", "FeatureGateError", "Down", "Degraded", "Failing", "OperationFailing", "TaskFailing",
		"Timeout", "Contested", "EmptySet", "NondeterministicGenerator", "ClusterUnreachable", "NameChanged",
		"Retry", "Terminal", "Conflict", "InternalError", "ServiceUnavailable", "TooManyRequests", "Unauthorized":
		return isFailing
	case "Waiting", "NotReady", "Initializing", "Terminating":
		return isWaiting
	case "InProgress", "Processing", "FirstSeen", "Restarting", "Retrying", "PruneWaits", "Asking",
		"Creating", "Updating", "Scaling", "TaskRunning", "TaskPending", "OperationPending",
		"Suspending", "PendingSuspension", "Disabling", "Withdrawing", "DeletionProcessing", "DeletionRetrying":
		return isUnderWay
	}
	return isBlocked
}
