package espalier

import (
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Steps returns a node that runs nodes in order, see [reconcilers.List]. It is for a place that takes one node.
func Steps[Type client.Object](nodes ...reconcilers.SubReconciler[Type]) *reconcilers.List[Type] {
	return &reconcilers.List[Type]{Nodes: nodes}
}
