package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State says in one word how an object or a feature is. The state of a feature is the reason of its condition.
type State string

// The states of objects that run for as long as they exist, such as a Deployment.
const (
	StateHealthy  State = "Healthy"
	StateCreating State = "Creating"
	StateUpdating State = "Updating"
	StateScaling  State = "Scaling"
	StateFailing  State = "Failing"
)

// The states of objects whose readiness depends on something else, such as a Service that waits for a load balancer.
const (
	StateOperational      State = "Operational"
	StateOperationPending State = "OperationPending"
	StateOperationFailing State = "OperationFailing"
)

// The states of objects that come to an end, such as a Job.
const (
	StateCompleted   State = "Completed"
	StateTaskRunning State = "TaskRunning"
	StateTaskPending State = "TaskPending"
	StateTaskFailing State = "TaskFailing"
)

// The states of features, and of objects that are suspended.
const (
	// StateBlocked means that an object waits for something that is no object of the feature, or for another object.
	StateBlocked State = "Blocked"
	// StateDegraded means that the feature is not healthy after its grace period, and works in part.
	StateDegraded State = "Degraded"
	// StateDown means that the feature is not healthy after its grace period, and does not work.
	StateDown State = "Down"
	// StatePendingSuspension means that an object has to be suspended, and was not told so yet.
	StatePendingSuspension State = "PendingSuspension"
	// StateSuspending means that an object was told to suspend, and has not done so yet.
	StateSuspending State = "Suspending"
	// StateSuspended means that nothing of the feature runs.
	StateSuspended State = "Suspended"
	// StateDisabling means that the gate is off, and objects of the feature are not gone yet.
	StateDisabling State = "Disabling"
	// StateDisabled means that the gate is off, and all objects of the feature are gone.
	StateDisabled State = "Disabled"
	// StateFeatureGateError means that the gate could not be evaluated.
	StateFeatureGateError State = "FeatureGateError"
	// StatePrerequisiteNotMet means that the feature was not rolled out yet, and waits for a prerequisite.
	StatePrerequisiteNotMet State = "PrerequisiteNotMet"
	// StateError means that an error was returned.
	StateError State = "Error"
	// StateUnknown means that an object did not report how it is.
	StateUnknown State = "Unknown"
)

// Health says how an object is.
type Health struct {
	// State is one of the states of objects.
	State State
	// Grade is what an object that is not healthy means after the grace period: [StateDegraded] or [StateDown]. It is
	// empty if it means neither, as for a Job that runs.
	Grade State
	// Reason says in one word why the object is not healthy, such as ProgressDeadlineExceeded or ImagePullBackOff. It
	// may be empty.
	Reason string
	// Message says in a stable text of limited length why the object is not healthy. It is empty if it is.
	Message string
	// Attributes name what is to blame, by keys such as "pod" and "container". For a healthy object they are what is to
	// be known of it, such as the name of the pod that serves. It may be nil.
	Attributes map[string]string
}

// LifecycleStatus is what has to be remembered of the features of a resource. A resource with features embeds it in
// its status with `json:",inline"`.
//
// +kubebuilder:object:generate=true
type LifecycleStatus struct {
	// Features has a record of each feature.
	// +optional
	// +listType=map
	// +listMapKey=name
	Features []FeatureStatus `json:"features,omitempty"`
}

// FeaturePhase is where a feature is in its life. The condition of the feature has the details.
type FeaturePhase string

const (
	// FeatureWaiting means that the feature waits for its prerequisites. Nothing of it is created, and nothing exists
	// unless the record of the feature was lost.
	FeatureWaiting FeaturePhase = "Waiting"
	// FeatureProgressing means that the feature was healthy before, or never, and is not healthy now.
	FeatureProgressing FeaturePhase = "Progressing"
	// FeatureHealthy means that all required objects are healthy.
	FeatureHealthy FeaturePhase = "Healthy"
	// FeatureSuspended means that the feature is suspended, or on the way there.
	FeatureSuspended FeaturePhase = "Suspended"
	// FeatureDisabled means that the gate is off.
	FeatureDisabled FeaturePhase = "Disabled"
)

// FeatureStatus is the record of one feature.
//
// +kubebuilder:object:generate=true
type FeatureStatus struct {
	// Name is the name of the feature.
	Name string `json:"name"`
	// Condition is the type of the condition that the feature reports.
	Condition string `json:"condition"`
	// Conditions are the types of the conditions that the nodes below the feature report, sorted. They are removed once
	// a later release does not report them any more.
	// +optional
	// +listType=set
	Conditions []string `json:"conditions,omitempty"`
	// Phase is where the feature is in its life.
	Phase FeaturePhase `json:"phase"`
	// Since is when the phase began. The grace period counts from the start of the phase Progressing.
	Since metav1.Time `json:"since"`
	// Generation is the generation of the resource for which the phase began.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Passed reports whether the prerequisites were met once since the feature was last disabled.
	// +optional
	Passed bool `json:"passed,omitempty"`
	// Dependents are the objects of the feature that are not as they should be, or that have attributes, and if the
	// feature says so all objects. The most important ones are first.
	// +optional
	// +listType=atomic
	Dependents []DependentStatus `json:"dependents,omitempty"`
	// OmittedDependents is how many more dependents there are than the list has room for.
	// +optional
	OmittedDependents int `json:"omittedDependents,omitempty"`
}

// DependentStatus says how one object of a feature is.
//
// +kubebuilder:object:generate=true
type DependentStatus struct {
	// +optional
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// State is how the object is.
	State State `json:"state"`
	// Since is when State or Reason became what they are. It is missing in an entry of an earlier release.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// Generation is the generation of the object that State is about. It is missing if that is not known.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Auxiliary reports whether the feature does without the object.
	// +optional
	Auxiliary bool `json:"auxiliary,omitempty"`
	// Reason says in one word why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
	// Attributes name what is to blame, by keys such as "pod" and "container", or what a rule of the feature makes
	// known of the object. There are at most ten, and their values are cut.
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}
