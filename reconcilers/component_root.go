package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/component"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComponentOptions are what can be said of a component that is all there is to a resource. The zero value is ready to use.
type ComponentOptions[Type client.Object] struct {
	// Config is what the root works with. It may also be set on the root. Required to reconcile.
	Config Config
	// Hooks are called around the work. Optional.
	Hooks component.Hooks[Type]
	// Configure, References, Inventory, FieldManager, ReclaimFrom, Finalizer, Dependents and Parallel are those of
	// [ComponentReconciler]. Optional.
	Configure    func(ctx context.Context, resource Type, configuration *component.Configuration) error
	References   func(ctx context.Context, resource Type) (map[string]string, error)
	Inventory    ComponentInventory
	FieldManager string
	ReclaimFrom  []string
	Finalizer    string
	Dependents   []client.Object
	Parallel     int
}

// NewComponentRoot returns a root for resources that are one component each: a [ResourceReconciler] whose tree is a
// [ComponentReconciler]. name is the Prefix of that.
//
// The root writes the status during deletion too, keeps delays, and leaves the events to the component. Whatever else is needed can be set on what is returned.
func NewComponentRoot[Type client.Object](name string, generator component.Generator, options ComponentOptions[Type]) *ResourceReconciler[Type] {
	return &ResourceReconciler[Type]{
		Config:                       options.Config,
		SyncStatusDuringFinalization: true,
		KeepResultAfterStatusUpdate:  true,
		SkipStatusEvents:             true,
		Reconciler: &ComponentReconciler[Type]{
			Prefix:       name,
			Generator:    generator,
			Hooks:        options.Hooks,
			Configure:    options.Configure,
			References:   options.References,
			Inventory:    options.Inventory,
			FieldManager: options.FieldManager,
			ReclaimFrom:  options.ReclaimFrom,
			Finalizer:    options.Finalizer,
			Dependents:   options.Dependents,
			Parallel:     options.Parallel,
		},
	}
}
