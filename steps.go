package espalier

import (
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Steps returns a node that runs nodes in order, see [reconcilers.Sequence]. It is for a place that takes one node.
func Steps[Type client.Object](nodes ...reconcilers.SubReconciler[Type]) reconcilers.Sequence[Type] {
	return nodes
}
