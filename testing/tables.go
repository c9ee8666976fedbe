package testing

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
)

// NodeTests are rows of a node, by name, over the API server of Kubernetes, which runs in the test binary. A row that
// passes is then replayed with a fault at each of its calls, see [Fault], with the node as the tree of a
// [reconcilers.ResourceReconciler], and must end in the same state. They run in no particular order.
//
//	rtesting.NodeTests[*v1.Tenant]{
//		"creates the quota": {
//			Resource:      tenant.Object(),
//			ExpectCreates: []client.Object{quota},
//		},
//	}.RunNode(t, scheme, QuotaReconciler)
//
// The rows are those of [SubReconcilerTests], which run over the fake client of controller-runtime unless they
// [ExpectConfig.UseFake], with these differences:
//
//   - The client and the APIReader are one server. The client has not seen yet what is in the APIGivenObjects alone.
//   - What only a server sets is compared only where an expectation sets it: UID, resource version, generation,
//     creation time, managed fields, and the UIDs of owner references. An observed generation that is current equals
//     none if the expectation has no generation.
//   - A type of the scheme has a status subresource if the Go type has a field Status. StatusSubResourceTypes have no
//     effect.
//   - Prepare, the factory and CleanUp run again for each replay: Prepare and CleanUp once for each run, with a context
//     that ends after CleanUp, and the factory once for each instance of the code, that is, after each death too. They
//     get the t of the row. So they must not call t.Parallel, which panics when it is called twice: call it in the test
//     of the table.
//   - A row with WithClientBuilder runs over the fake client, since that is what the builder makes, and one with a
//     Server over that. Neither is replayed.
type NodeTests[Type client.Object] map[string]SubReconcilerTestCase[Type]

// Run runs the rows as subtests.
func (nt NodeTests[Type]) Run(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[Type]) {
	t.Helper()
	runTests(t, nt, func(t *testing.T, tc *SubReconcilerTestCase[Type]) {
		t.Helper()
		tc.mark.onServer = true
		tc.Run(t, scheme, factory)
	})
}

// RunNode is [NodeTests.Run] for a node that needs nothing from its row. Each instance is a node of its own, which make
// returns.
func (nt NodeTests[Type]) RunNode(
	t *testing.T, scheme *runtime.Scheme, make func() reconcilers.SubReconciler[Type],
) {
	t.Helper()
	nt.Run(t, scheme, func(
		*testing.T, *SubReconcilerTestCase[Type], reconcilers.Config,
	) reconcilers.SubReconciler[Type] {
		return make()
	})
}

// RootTests are [NodeTests] of a root reconciler with its whole tree. The rows are those of [ReconcilerTests].
type RootTests map[string]ReconcilerTestCase

// Run runs the rows as subtests.
func (rt RootTests) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	runTests(t, rt, func(t *testing.T, tc *ReconcilerTestCase) {
		t.Helper()
		tc.mark.onServer = true
		tc.Run(t, scheme, factory)
	})
}

// RunRoot is [RootTests.Run] for a root that needs nothing but a config. Each instance is a root of its own, which make
// returns.
func (rt RootTests) RunRoot(t *testing.T, scheme *runtime.Scheme, make func(reconcilers.Config) reconcile.Reconciler) {
	t.Helper()
	rt.Run(t, scheme, func(_ *testing.T, _ *ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return make(c)
	})
}
