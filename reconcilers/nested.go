package reconcilers

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/validation"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setUpStep is the Setup of a node, or the set-up of a node nested in it.
type setUpStep = func(ctx context.Context, mgr Manager, bldr *Builder) error

// setUpNode validates a node and then runs the steps of its set-up in order, up to the first error. A nil step is
// skipped.
func setUpNode(
	ctx context.Context, mgr Manager, bldr *Builder, node validation.Validator, name string, steps ...setUpStep,
) error {
	ctx = Enter(ctx, name)
	if err := node.Validate(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		if step == nil {
			continue
		}
		if err := step(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// setUpOf returns the set-up of a nested node, or nil if the node is nil.
func setUpOf[Type client.Object](node SubReconciler[Type]) setUpStep {
	if gotype.IsNil(node) {
		return nil
	}
	return node.SetupWithManager
}

// validateField validates the node in a field of another node, if the validation is recursive.
func validateField(ctx context.Context, kind, name, field string, node any) error {
	if err := validateNested(ctx, node); err != nil {
		return fmt.Errorf("%s %q must have a valid %s: %w", kind, name, field, err)
	}
	return nil
}

// reconcileNested runs a nested node.
func reconcileNested[Type client.Object](ctx context.Context, node SubReconciler[Type], resource Type) (Result, error) {
	result, err := node.Reconcile(ctx, resource)
	recordUnlocated(ctx, err)
	return result, err
}
