package feature

import (
	"slices"

	"github.com/espalier-dev/espalier/apis"
)

// priorities are all states, the most important one first. It decides which of several states is reported: that of an
// object in the condition of its feature, and that of a feature in the summary of a resource.
var priorities = []apis.State{
	apis.StateError,
	apis.StateFeatureGateError,
	apis.StateDown,
	apis.StateDegraded,
	apis.StatePendingSuspension,
	apis.StateSuspending,
	apis.StateDisabling,
	apis.StateFailing,
	apis.StateOperationFailing,
	apis.StateTaskFailing,
	// What waits may wait for the task.
	apis.StateTaskRunning,
	apis.StateBlocked,
	apis.StatePrerequisiteNotMet,
	apis.StateScaling,
	apis.StateUpdating,
	apis.StateCreating,
	apis.StateOperationPending,
	apis.StateTaskPending,
	// What did not report is not known to be healthy.
	apis.StateUnknown,
	apis.StateSuspended,
	apis.StateDisabled,
	apis.StateHealthy,
	apis.StateOperational,
	apis.StateCompleted,
}

// rank returns the place of a state in the priorities. A state that is not among them ranks as Unknown.
func rank(state apis.State) int {
	if i := slices.Index(priorities, state); i >= 0 {
		return i
	}
	return slices.Index(priorities, apis.StateUnknown)
}
