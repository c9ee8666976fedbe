package metrics

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Options are the settings of an [Observer].
type Options struct {
	// Registerer is where the metrics are registered. Default: the registry of controller-runtime.
	Registerer prometheus.Registerer

	// PerResource adds series for each condition and each feature of each resource, with the namespace and the name of
	// the resource. They are deleted when the resource or the condition is gone. Default: false.
	PerResource bool
}

// Observer has what nodes do counted and measured. Give one to all roots of a manager, by
// [reconcilers.Config.WithObserver].
type Observer struct {
	collectors  *collectors
	perResource bool
	// roots has the [root] for each node of a root, and resources the [reconciled] for each controller and kind.
	roots, resources sync.Map
	// watches has the number of watches for each node of a root that was set up.
	watches sync.Map
}

var _ reconcilers.Observer = (*Observer)(nil)

// New registers the metrics and returns an observer. If another observer has registered them, both share them.
//
// It returns an error if the registry has other metrics of the same names.
func New(options Options) (*Observer, error) {
	registerer := options.Registerer
	if registerer == nil {
		registerer = metrics.Registry
	}
	c, err := newCollectors(registerer)
	if err != nil {
		return nil, err
	}
	return &Observer{collectors: c, perResource: options.PerResource}, nil
}

// Start implements [reconcilers.Observer].
func (o *Observer) Start(ctx context.Context, _ *reconcilers.Node) context.Context { return ctx }

// End implements [reconcilers.Observer].
func (o *Observer) End(ctx context.Context, node *reconcilers.Node, outcome reconcilers.Outcome) {
	isRoot := node == node.Root
	if node.Name == "" && !isRoot {
		return
	}
	r := o.rootOf(ctx, node)
	r.node(node).ended(outcome)
	if isRoot && outcome.Resource != nil && r.hasResources {
		r.setConditions(resourceOf(ctx), outcome.Resource.GetUID(), outcome.Conditions)
	}
}

// Note implements [reconcilers.Observer].
func (o *Observer) Note(ctx context.Context, node *reconcilers.Node, fact any) {
	if setUp, ok := fact.(reconcilers.SetUp); ok {
		// A process that is not the leader is set up, too, so it is not shown yet.
		o.watches.Store(node.Root, len(setUp.Watched))
		return
	}
	if of, ok := fact.(*shard.Shard); ok {
		o.collectors.shards.add(of)
		return
	}
	if failed, ok := fact.(reconcilers.WatchFailed); ok {
		o.collectors.watchFailures.WithLabelValues(labelValue(failed.Type)).Inc()
		return
	}
	if reconcilers.IsDryRun(ctx) {
		return
	}
	r := o.rootOf(ctx, node)
	switch fact := fact.(type) {
	case reconcilers.Saved:
		r.saved.Add(float64(fact.Objects))
	case reconcilers.Write:
		r.countWrite(fact)
	case reconcilers.Held:
		o.collectors.writesHeld.WithLabelValues(r.controller, string(fact.Kind)).Inc()
	case reconcilers.Lagging:
		o.collectors.cacheLags.WithLabelValues(r.controller).Inc()
	case reconcilers.Woken:
		r.countCauses(fact.Causes)
	case reconcilers.Forgotten:
		r.forget(resourceOf(ctx))
	case feature.Phase:
		r.setFeature(resourceOf(ctx), node, fact)
	case sized:
		o.collectors.sizes.addWatched(fact)
	case rollout:
		r.setComponent(ctx, node, fact)
	}
}

// resourceOf returns the name of the resource of a request.
func resourceOf(ctx context.Context) types.NamespacedName {
	return reconcilers.RetrieveRequest(ctx).NamespacedName
}

type controllerKind struct {
	controller string
	resource   schema.GroupVersionKind
}

func (o *Observer) rootOf(ctx context.Context, node *reconcilers.Node) *root {
	if known, ok := o.roots.Load(node.Root); ok {
		return known.(*root)
	}
	of := node.Root
	resources, _ := o.resources.LoadOrStore(controllerKind{of.Controller, of.Resource}, newReconciled())
	made := newRoot(o.collectors, o.perResource, of, resources.(*reconciled))
	if config, err := reconcilers.RetrieveOriginalConfig(ctx); err == nil {
		o.collectors.sizes.addTracker(config.Tracker)
	}
	if watches, ok := o.watches.Load(of); ok {
		o.collectors.watches.WithLabelValues(made.controller).Set(float64(watches.(int)))
	}
	known, _ := o.roots.LoadOrStore(of, made)
	return known.(*root)
}
