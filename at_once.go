package espalier

import (
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AtOnce returns a node that runs nodes at the same time, see [reconcilers.Parallel]. It is for nodes that wait for
// something slow, such as a service outside, and need nothing of each other. It stands wherever a node does: in the
// list of [For], in that of [Steps], or as the node of a feature.
func AtOnce[Type client.Object](nodes ...reconcilers.SubReconciler[Type]) *reconcilers.Parallel[Type] {
	return &reconcilers.Parallel[Type]{Nodes: nodes}
}
