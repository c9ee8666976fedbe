package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// WithConfig runs a node with another [Config], such as one for another cluster, with another identity, or with its own
// tracker.
//
//   - Runs: Config once, then the nested node.
//   - Stops: at an error of Config. The nested node then does not run.
//   - On error: an error of Config is returned without a result. An error of the nested node is returned with its
//     result.
//   - On deletion: the same.
//
// The nested node gets the config from [RetrieveConfig], and its children are read and written with it.
// [RetrieveOriginalConfig] still returns the config of the root: status, finalizers and events of the resource are
// written in the cluster that the resource was loaded from.
//
// Children and tracked objects are watched in the cluster of the config. Add that cluster to the manager, so that its
// cache runs. The identity of the cluster needs the rights to list and watch what is read from its cache; see
// [Config.WithCluster] for what happens without them, and for how to limit the cache to some namespaces. Other nodes
// and other resources are not held up.
type WithConfig[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: WithConfig.
	Name string

	// Config returns the config for the nested node, given the current one. It is called at set-up and in each request.
	// For one cluster it should return the same config each time, because indexes and trackers belong to one config.
	// Required.
	Config func(context.Context, Config) (Config, error)

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*WithConfig[client.Object])(nil)

func (r *WithConfig[Type]) init() {
	r.initOnce.Do(func() { r.Name = cmp.Or(r.Name, "WithConfig") })
}

// SetupWithManager validates, and sets up the nested node with the config that Config returns.
func (r *WithConfig[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	ctx, err := r.replace(ctx)
	if err != nil {
		return err
	}
	return r.Reconciler.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks that the required fields are set and, if recursive, the nested node. It does not call Config. The
// set-up validates the nested node again, with its own config.
func (r *WithConfig[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "WithConfig", r.Name, "Reconciler", r.Reconciler)
}

func (r *WithConfig[Type]) check() error {
	if r.Config == nil {
		return fmt.Errorf("WithConfig %q must define Config", r.Name)
	}
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("WithConfig %q must define Reconciler", r.Name)
	}
	return nil
}

// Reconcile runs the nested node, see [WithConfig].
func (r *WithConfig[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)
	replaced, err := r.replace(ctx)
	if err != nil {
		recordUnlocated(ctx, err)
		return Result{}, err
	}
	return ReconcileNested(replaced, r.Reconciler, resource)
}

// replace returns a context with the config for the nested node.
func (r *WithConfig[Type]) replace(ctx context.Context) (context.Context, error) {
	current, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := r.Config(ctx, current)
	if err != nil {
		return nil, err
	}
	return StashConfig(ctx, config), nil
}

// Describe shows the nested node.
func (r *WithConfig[Type]) Describe() Description {
	r.init()
	nested := []Description{Describe(r.Reconciler)}
	return Description{Kind: "WithConfig", Name: r.Name, Nodes: nested, ReplacesConfig: true}
}
