package component

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are the optional parts of [NewComponentRoot]. The zero value is ready to use.
type Options[Type client.Object] struct {
	// Config is what the root works with. It may also be set on the root. Required to reconcile.
	Config reconcilers.Config
	// The other fields are those of [ComponentReconciler].
	Hooks        generator.Hooks[Type]
	Policies     generator.PolicySpec
	Configure    func(ctx context.Context, resource Type, configuration *generator.Configuration) error
	References   func(ctx context.Context, resource Type) (map[string]string, error)
	Inventory    Inventory
	FieldManager string
	ReclaimFrom  []string
	Finalizer    string
	Dependents   []client.Object
	Parallel     int
	FenceMargin  time.Duration
	AllowEmpty   bool

	DefaultServiceAccount string
	ClusterID             string
	RequestTimeout        time.Duration
}

// NewComponentRoot returns a root for resources that are one component each: a [reconcilers.ResourceReconciler] whose
// tree is a [ComponentReconciler] with the Prefix name.
//
// The root writes the status during deletion too, keeps delays, and leaves the events to the component. Set other
// fields on the root that is returned.
func NewComponentRoot[Type client.Object](
	name string, generator generator.Generator, options Options[Type],
) *reconcilers.ResourceReconciler[Type] {
	return &reconcilers.ResourceReconciler[Type]{
		Config:                       options.Config,
		SyncStatusDuringFinalization: true,
		KeepResultAfterStatusUpdate:  true,
		SkipStatusEvents:             true,
		SkipFinalizerEvents:          true,
		Reconciler: &ComponentReconciler[Type]{
			Prefix:       name,
			Generator:    generator,
			Hooks:        options.Hooks,
			Policies:     options.Policies,
			Configure:    options.Configure,
			References:   options.References,
			Inventory:    options.Inventory,
			FieldManager: options.FieldManager,
			ReclaimFrom:  options.ReclaimFrom,
			Finalizer:    options.Finalizer,
			Dependents:   options.Dependents,
			Parallel:     options.Parallel,
			FenceMargin:  options.FenceMargin,
			AllowEmpty:   options.AllowEmpty,

			DefaultServiceAccount: options.DefaultServiceAccount,
			ClusterID:             options.ClusterID,
			RequestTimeout:        options.RequestTimeout,
		},
	}
}
