package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// IfThen runs one of two nodes, depending on a condition.
//
//   - Runs: Then if the condition is true, otherwise Else, if it is set. The condition is evaluated once in each
//     request.
//   - Stops: never on its own.
//   - On error: returns the error and the result of the node that ran, unchanged.
//   - On deletion: the same. A node that must clean up has to run, so the condition should select it for a terminating
//     resource too. Owned children need no such node, because they are deleted with the resource.
//
// A child under Then is not deleted when the condition becomes false. To delete it, use a [ChildReconciler] that
// desires no child.
type IfThen[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: IfThen.
	Name string

	// Setup adds watches and indexes, before those of the nodes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// If is the condition. It must not change the resource. Required.
	If func(ctx context.Context, resource Type) bool

	// Then runs if the condition is true. Required.
	Then SubReconciler[Type]

	// Else runs if the condition is false. Optional.
	Else SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*IfThen[client.Object])(nil)

func (r *IfThen[Type]) init() {
	r.initOnce.Do(func() { r.Name = cmp.Or(r.Name, "IfThen") })
}

// SetupWithManager validates, then sets up the node itself, Then and Else.
func (r *IfThen[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.Setup, setUpOf(r.Then), setUpOf(r.Else))
}

// Validate checks that the required fields are set and, if recursive, the nodes.
func (r *IfThen[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateField(ctx, "IfThen", r.Name, "Then", r.Then); err != nil {
		return err
	}
	if gotype.IsNil(r.Else) {
		return nil
	}
	return validateField(ctx, "IfThen", r.Name, "Else", r.Else)
}

func (r *IfThen[Type]) check() error {
	if r.If == nil {
		return fmt.Errorf("IfThen %q must implement If", r.Name)
	}
	if gotype.IsNil(r.Then) {
		return fmt.Errorf("IfThen %q must implement Then", r.Name)
	}
	return nil
}

// Reconcile runs one of the nodes, see [IfThen].
func (r *IfThen[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)
	branch := r.Else
	if r.If(ctx, resource) {
		branch = r.Then
	}
	if gotype.IsNil(branch) {
		return Result{}, nil
	}
	return ReconcileNested(ctx, branch, resource)
}

// Describe shows both nodes.
func (r *IfThen[Type]) Describe() Description {
	r.init()
	then := describeAs("Then", r.Then)
	d := Description{Kind: "IfThen", Name: r.Name, Nodes: []Description{then}, alternatives: true}
	if !gotype.IsNil(r.Else) {
		d.Nodes = append(d.Nodes, describeAs("Else", r.Else))
	}
	return d
}
