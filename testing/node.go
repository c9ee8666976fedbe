package testing

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/reconcilers"
)

// RunNode runs the cases with a node that needs nothing from its case. Each case has a node of its own, which make
// returns. It is [SubReconcilerTests.Run] for such a node.
func (s SubReconcilerTests[Type]) RunNode(
	t *testing.T, scheme *runtime.Scheme, make func() reconcilers.SubReconciler[Type],
) {
	t.Helper()
	s.Run(t, scheme, func(
		*testing.T, *SubReconcilerTestCase[Type], reconcilers.Config,
	) reconcilers.SubReconciler[Type] {
		return make()
	})
}
