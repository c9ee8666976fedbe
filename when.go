package espalier

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Branch is a node that runs other nodes under a condition. [When] and [WhenTrue] return it.
type Branch[Type client.Object] struct {
	Ordered[*Branch[Type]]

	holds func(ctx context.Context, resource Type) bool
	nodes *reconcilers.List[Type]
	// awaited is the type of the condition that the nodes wait for; empty if they are not needed while holds is false.
	awaited string

	// reported are the types of the conditions that the nodes report.
	reported     []string
	reportedOnce sync.Once
}

// When returns a node that runs nodes in order while a function returns true. While it returns false, the nodes are not
// needed, and the conditions that they report are removed. Children that they made stay: if a child has to go, its own
// function returns nil.
//
//   - Runs: the nodes, if the function returns true.
//   - Stops: as the list of the nodes does, see [reconcilers.List]. While the function returns false, the nodes after
//     this one run.
//   - On error: returns it.
//   - On deletion, and on [reconcilers.Withdraw]: runs the nodes without asking the function, because they may have to
//     clean up.
func When[Type client.Object](
	name string, holds func(ctx context.Context, resource Type) bool, nodes ...reconcilers.SubReconciler[Type],
) *Branch[Type] {
	return newBranch(name, holds, nodes)
}

func newBranch[Type client.Object](
	name string, holds func(ctx context.Context, resource Type) bool, nodes []reconcilers.SubReconciler[Type],
) *Branch[Type] {
	branch := &Branch[Type]{holds: holds, nodes: Steps(nodes...)}
	branch.self, branch.rules = branch, rules{word: "When", name: name, desires: true}
	return branch
}

// WhenTrue is [When] for nodes that have to wait until a condition of the resource is True, which an earlier node
// reports. While they wait, the conditions that they report are Unknown, with the reason Waiting.
//
// The set-up of the root refuses a condition that no node reports, and one that is never True before the nodes have
// run: that of the root, or of one of the nodes.
func WhenTrue[Type client.Object](conditionType string, nodes ...reconcilers.SubReconciler[Type]) *Branch[Type] {
	holds := func(_ context.Context, resource Type) bool {
		return apis.ConditionIsTrue(reconcilers.GetCondition(resource, conditionType))
	}
	branch := newBranch(conditionType, holds, nodes)
	branch.awaited = conditionType
	return branch
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
		return b.errorf("must have a function")
	}
	if err := b.check(); err != nil {
		return err
	}
	return b.nodes.Validate(ctx)
}

// Reconcile runs the nodes or not, see [When].
func (b *Branch[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	if b.holds == nil {
		return reconcilers.Result{}, b.Validate(ctx)
	}
	ctx = reconcilers.Enter(ctx, b.name)
	if reconcilers.CleansUp(ctx, resource) {
		return b.nodes.Reconcile(ctx, resource)
	}
	waits := reconcilers.Unmet(ctx, &b.order)
	if waits == "" {
		if b.holds(ctx, resource) {
			return b.nodes.Reconcile(ctx, resource)
		}
		if b.awaited != "" {
			waits = "waiting until " + b.awaited + " is True"
		}
	}
	b.reportedOnce.Do(func() {
		b.nodes.Describe().Walk(func(_ string, d reconcilers.Description) {
			b.reported = append(b.reported, d.Conditions...)
		})
	})
	if waits != "" {
		reconcilers.NotDone(ctx)
	}
	for _, conditionType := range b.reported {
		if waits == "" {
			reconcilers.NotNeeded(ctx, resource, conditionType)
			continue
		}
		condition := waitingFor(waits)
		condition.Type = conditionType
		reconcilers.ReportCondition(ctx, resource, condition)
	}
	return reconcilers.Result{}, nil
}

// Describe shows the nodes.
func (b *Branch[Type]) Describe() reconcilers.Description {
	d := reconcilers.Description{
		Kind:  "When",
		Name:  b.name,
		Order: b.orderOf(),
		Nodes: []reconcilers.Description{b.nodes.Describe()},
	}
	if b.awaited != "" {
		d.Awaits = []string{b.awaited}
	}
	return d
}
