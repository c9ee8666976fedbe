package espalier

import (
	"context"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Branch is a node that runs other nodes under a condition. [When] and [WhenTrue] return it.
type Branch[Type client.Object] struct {
	name  string
	holds func(ctx context.Context, resource Type) bool
	nodes reconcilers.Sequence[Type]
	// awaited is the type of a condition that the nodes wait for; empty if they are not needed while holds is false.
	awaited string

	// reported are the types of the conditions that the nodes report.
	reported     []string
	reportedOnce sync.Once
	reporter     reconcilers.Reporter
}

// When returns a node that runs nodes in order while a function returns true. While it returns false, the nodes are not
// needed, and the conditions that they report are removed. Children that they made stay: if a child has to go, its own
// function returns nil.
//
//   - Runs: the nodes, if the function returns true.
//   - Stops: at the first error, as [reconcilers.Sequence]. The nodes after this one run in any case.
//   - On error: returns it.
//   - On deletion, and on [reconcilers.Withdraw]: runs the nodes without asking the function, because they may have to
//     clean up.
func When[Type client.Object](
	name string, holds func(ctx context.Context, resource Type) bool, nodes ...reconcilers.SubReconciler[Type],
) *Branch[Type] {
	return &Branch[Type]{name: name, holds: holds, nodes: nodes}
}

// WhenTrue is [When] for nodes that have to wait until a condition of the resource is True, which an earlier node
// reports. While they wait, the conditions that they report are Unknown, with the reason Waiting.
func WhenTrue[Type client.Object](conditionType string, nodes ...reconcilers.SubReconciler[Type]) *Branch[Type] {
	holds := func(_ context.Context, resource Type) bool {
		return apis.ConditionIsTrue(reconcilers.GetCondition(resource, conditionType))
	}
	return &Branch[Type]{name: conditionType, holds: holds, nodes: nodes, awaited: conditionType}
}

// SetupWithManager validates, and sets up the nodes.
func (b *Branch[Type]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	ctx = reconcilers.Enter(ctx, b.name)
	if err := b.Validate(ctx); err != nil {
		return err
	}
	return b.nodes.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks that the function is set and, if recursive, the nodes.
func (b *Branch[Type]) Validate(ctx context.Context) error {
	if b.holds == nil {
		return fmt.Errorf("When %q must have a function", b.name)
	}
	return b.nodes.Validate(ctx)
}

// Reconcile runs the nodes or not, see [When].
func (b *Branch[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	if b.holds == nil {
		return reconcilers.Result{}, b.Validate(ctx)
	}
	ctx = reconcilers.Enter(ctx, b.name)
	if reconcilers.CleansUp(ctx, resource) || b.holds(ctx, resource) {
		return b.nodes.Reconcile(ctx, resource)
	}
	b.reportedOnce.Do(func() {
		b.nodes.Describe().Walk(func(_ string, d reconcilers.Description) {
			b.reported = append(b.reported, d.Conditions...)
		})
	})
	for _, conditionType := range b.reported {
		b.skip(ctx, resource, conditionType)
	}
	return reconcilers.Result{}, nil
}

// skip handles the condition of a node that does not run.
func (b *Branch[Type]) skip(ctx context.Context, resource Type, conditionType string) {
	if b.awaited == "" {
		reconcilers.NotNeeded(ctx, resource, conditionType)
		return
	}
	b.reporter.Report(ctx, resource, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionUnknown, Reason: ReasonWaiting,
		Message: "waiting until " + b.awaited + " is True",
	})
}

// Describe shows the nodes.
func (b *Branch[Type]) Describe() reconcilers.Description {
	return reconcilers.Description{
		Kind:  "When",
		Name:  b.name,
		Nodes: []reconcilers.Description{b.nodes.Describe()},
	}
}
