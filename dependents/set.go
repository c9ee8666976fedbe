package dependents

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Set is a node that keeps dependents as they should be.
//
//   - Runs: each dependent, in an order in which those that wait for others come after them, and else in the given
//     order. One that waits is blocked: its object stays as it is, or is not created.
//   - Stops: never on its own. A dependent that is blocked or fails keeps only those from running that wait for it.
//   - On error: the other dependents run. The errors are joined and returned, but for those of auxiliary dependents. A
//     halt of one dependent does not stop the others. If only some errors are quiet, these are dropped.
//   - On deletion: deletes what the resource controls, in reverse order. Unowned objects stay.
//
// Below a supervisor that suspends, guards are not asked for objects that exist. Below one that withdraws, all that is
// managed is deleted in reverse order, unowned objects too, and no guard is asked.
//
// While nothing changes, the node makes no request.
type Set[T client.Object] struct {
	// Name identifies the node in paths and logs. Required.
	Name string
	// Condition is the type of a condition that sums up the dependents: True with the reason Ready; False with the
	// reason Error, or with the state of the first object that is not ready. Default: none.
	Condition string
	// Dependents are the dependents. An empty list does nothing.
	Dependents []Node[T]

	initOnce sync.Once
	plans    []*plan
	order    []int
	invalid  error
}

var _ reconcilers.SubReconciler[client.Object] = (*Set[client.Object])(nil)

func (s *Set[T]) init() {
	s.initOnce.Do(func() { s.invalid = s.check() })
}

func (s *Set[T]) check() error {
	if s.Name == "" {
		return fmt.Errorf("Set must have a Name")
	}
	for i, d := range s.Dependents {
		if gotype.IsNil(d) {
			return fmt.Errorf("Set %q must have a valid Dependents[%d]: must not be nil", s.Name, i)
		}
		if err := d.check(); err != nil {
			return fmt.Errorf("Set %q: %w", s.Name, err)
		}
		s.plans = append(s.plans, d.planned())
	}
	var err error
	if s.order, err = order(s.plans); err != nil {
		return fmt.Errorf("Set %q: %w", s.Name, err)
	}
	return nil
}

// Validate checks the dependents, and that each can run: that what it waits for is in the set, and never waits for it.
func (s *Set[T]) Validate(ctx context.Context) error {
	if s.init(); s.invalid != nil {
		return s.invalid
	}
	for _, d := range s.Dependents {
		if err := d.validate(ctx); err != nil {
			return fmt.Errorf("Set %q: %w", s.Name, err)
		}
	}
	return nil
}

// SetupWithManager validates, and watches the types of the dependents.
func (s *Set[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	ctx = reconcilers.Enter(ctx, s.Name)
	if err := s.Validate(ctx); err != nil {
		return err
	}
	for _, d := range s.Dependents {
		if err := d.setUp(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// Reconcile makes the objects as they should be, see [Set].
func (s *Set[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	var result reconcilers.Result
	if s.init(); s.invalid != nil {
		return result, s.invalid
	}
	ctx = withValues(reconcilers.Enter(ctx, s.Name))
	terminating := resource.GetDeletionTimestamp() != nil
	removes := terminating || reconcilers.SupervisionOf(ctx, resource) == reconcilers.Withdraw
	outcomes := make([]named, 0, len(s.order))
	done := map[string]bool{}
	each := slices.All(s.order)
	if removes {
		each = slices.Backward(s.order)
	}
	for _, i := range each {
		d, p := s.Dependents[i], s.plans[i]
		o := named{name: p.name}
		if removes {
			o.outcome = d.remove(ctx, resource)
		} else {
			o.outcome = d.run(ctx, resource, waitsFor(p, valuesOf(ctx), done))
		}
		done[p.name] = o.done
		result = reconcilers.AggregateResults(result, o.result)
		outcomes = append(outcomes, o)
	}
	if s.Condition != "" && !terminating {
		condition := conditionOf(outcomes)
		condition.Type = s.Condition
		reconcilers.SetCondition(ctx, resource, condition)
	}
	return result, join(outcomes)
}

// Describe lists the dependents, in the order in which they run, with what each waits for.
func (s *Set[T]) Describe() reconcilers.Description {
	description := reconcilers.Description{Kind: "Set", Name: s.Name}
	if s.Condition != "" {
		description.Conditions = []string{s.Condition}
	}
	if s.init(); s.invalid != nil {
		return description
	}
	for _, i := range s.order {
		description.Nodes = append(description.Nodes, s.Dependents[i].description())
	}
	return description
}

// Graph returns a line for each dependent, in the order in which they run: its name, the kind of its object, its
// switches, what it yields, and what it waits for. It returns an empty text for a set that is not valid.
func (s *Set[T]) Graph() string {
	if s.init(); s.invalid != nil {
		return ""
	}
	return graph(s.plans, s.order)
}
