package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/validation"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// applyDefaults fills in the defaults of resource in memory, by the first of the ways that its type knows: its own
// Default(ctx), a defaulter of controller-runtime's webhooks, or a Default() of old.
func applyDefaults[Type client.Object](ctx context.Context, resource Type) error {
	switch defaulter := any(resource).(type) {
	case validation.Defaulter:
		return defaulter.Default(ctx)
	case admission.Defaulter[Type]:
		return defaulter.Default(ctx, resource)
	case admission.Defaulter[runtime.Object]:
		return defaulter.Default(ctx, resource)
	case interface{ Default() }:
		defaulter.Default()
	}
	return nil
}
