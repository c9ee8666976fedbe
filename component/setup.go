package component

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// checkStatus returns an error if a resource of the type of sample has no status of a component.
func (r *ComponentReconciler[T]) checkStatus(ctx context.Context, sample T) error {
	if !r.statusByDefault || gotype.IsNil(sample) || reconcilers.HasItem(ctx) {
		// Only the author knows what Status returns for a resource with content.
		return nil
	}
	if _, ok := any(sample).(statusGetter); ok {
		return nil
	}
	if statusfield.PartOf[apis.ComponentStatus](statusfield.WithStatus(sample)) == nil {
		return fmt.Errorf("ComponentReconciler %q finds no apis.ComponentStatus in the status of %s: "+
			"embed apis.ComponentStatus in the type of its field Status, or define Status", r.Name, typeOf(sample))
	}
	return nil
}

// prefixClaim and statusClaim are what a component has alone of all components of a resource.
type (
	prefixClaim string
	statusClaim statusfield.Place
)

// claim returns an error if another component of the tree has the prefix or the status of this one.
func (r *ComponentReconciler[T]) claim(ctx context.Context, sample T) error {
	if claimant, taken := reconcilers.Claim(ctx, prefixClaim(r.Prefix)); taken {
		return fmt.Errorf("ComponentReconciler %q must define another Prefix than %q, which %s has",
			r.Name, r.Prefix, claimant)
	}
	status := statusfield.PlaceOf(r.Status, sample)
	if status == (statusfield.Place{}) || reconcilers.HasItem(ctx) {
		return nil
	}
	if claimant, taken := reconcilers.Claim(ctx, statusClaim(status)); taken {
		return fmt.Errorf("ComponentReconciler %q must define another Status than that of %s", r.Name, claimant)
	}
	return nil
}

// permanentError is an error that no retry mends. The root returns it, so that it is logged, and controller-runtime
// does not retry it.
type permanentError struct{ error }

func permanent(err error) error { return &permanentError{err} }

// Unwrap makes it a terminal error of controller-runtime, without the words of one.
func (e *permanentError) Unwrap() []error { return []error{e.error, reconcile.TerminalError(nil)} }
