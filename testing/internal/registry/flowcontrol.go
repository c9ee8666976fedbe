package registry

import (
	"cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// completeFlowSchema sets the defaults of the Kubernetes API reference, FlowSchema v1 flowcontrol.apiserver.k8s.io.
func completeFlowSchema(s, _ *flowcontrolv1.FlowSchema) {
	s.Spec.MatchingPrecedence = cmp.Or(s.Spec.MatchingPrecedence, 1000)
}

// completePriorityLevel sets the defaults of the Kubernetes API reference, PriorityLevelConfiguration v1
// flowcontrol.apiserver.k8s.io.
func completePriorityLevel(c, _ *flowcontrolv1.PriorityLevelConfiguration) {
	if exempt := c.Spec.Exempt; exempt != nil {
		setDefault(&exempt.NominalConcurrencyShares, 0)
		setDefault(&exempt.LendablePercent, 0)
	}
	limited := c.Spec.Limited
	if limited == nil {
		return
	}
	setDefault(&limited.NominalConcurrencyShares, 30)
	setDefault(&limited.LendablePercent, 0)
	if queues := limited.LimitResponse.Queuing; queues != nil {
		queues.Queues = cmp.Or(queues.Queues, 64)
		queues.HandSize = cmp.Or(queues.HandSize, 8)
		queues.QueueLengthLimit = cmp.Or(queues.QueueLengthLimit, 50)
	}
}
