package reconcilers

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcile reads the object, runs the tree, and has the manager make what is desired.
func (r *AggregateReconciler[T]) reconcile(ctx context.Context, req Request, p *requestState) (Result, error) {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return Result{}, err
	}
	actual, err := r.read(ctx, config, req)
	if err != nil {
		return Result{}, err
	}
	if gotype.IsNil(actual) || actual.GetDeletionTimestamp() != nil {
		return Result{}, nil
	}
	p.resource = r.states.Of(actual)
	defer func() { p.resource.EndRequest(rtime.RetrieveNow(ctx)) }()
	p.stored = actual
	version := actual.GetResourceVersion()
	resource := copyOf(actual)
	if resource.GetGeneration() != 0 {
		ctx = apis.StashGeneration(ctx, resource.GetGeneration())
	}

	d, err := r.runTree(ctx, config, actual, resource)
	var managed T
	if err == nil {
		config.Tracker = untracked{}
		managed, err = r.manager.Manage(StashConfig(ctx, config), resource, actual, d.desired)
		if err != nil {
			recordFailure(ctx, describeObject(actual), err)
		}
	}
	r.remember(ctx, req, p, version, managed)
	if err == nil && gotype.IsNil(d.desired) && actual.GetUID() != "" {
		p.resource.Deleted(actual, rtime.RetrieveNow(ctx))
	}
	return d.result, joinLoud(d.halted, err)
}

// desiredState is the outcome of the tree and of DesiredResource.
type desiredState[T client.Object] struct {
	desired T
	result  Result
	// halted is the error of a tree that halted and returned more than that; else nil.
	halted error
}

// runTree runs the tree and asks what is desired.
func (r *AggregateReconciler[T]) runTree(
	ctx context.Context, config Config, actual, resource T,
) (d desiredState[T], err error) {
	withTrackerRound(config, actual, func() (complete bool) {
		d.result, err = r.Reconciler.Reconcile(ctx, resource)
		recordUnlocated(ctx, err)
		complete = err == nil
		switch {
		case isOnlyHalt(err):
		case isHalt(err):
			d.halted = err
		case err != nil:
			return false
		}
		d.desired, err = r.desired(ctx, actual, resource)
		recordUnlocated(ctx, err)
		return complete && err == nil
	})
	return d, err
}

func (r *AggregateReconciler[T]) desired(ctx context.Context, actual, resource T) (T, error) {
	var none T
	if err := normalize(resource); err != nil {
		return none, err
	}
	desired, err := r.DesiredResource(ctx, copyOf(resource))
	if err != nil || gotype.IsNil(desired) {
		return none, err
	}
	if client.ObjectKeyFromObject(desired) != client.ObjectKeyFromObject(actual) {
		return none, fmt.Errorf("AggregateReconciler %q must desire %s, not %s",
			r.Name, describeObject(actual), describeObject(desired))
	}
	return desired, nil
}

// untracked is a tracker that tracks nothing.
type untracked struct{}

func (untracked) TrackReference(tracker.Reference, client.Object) error { return nil }

func (untracked) TrackObject(client.Object, client.Object) error { return nil }

func (untracked) GetObservers(client.Object) ([]types.NamespacedName, error) {
	return []types.NamespacedName{}, nil
}

// read returns the object as the API server has it, as far as is known. If there is none, it returns an empty object of
// the name. If the root deleted the object and the cache does not show that yet, it returns nil. The caller may change
// the object.
func (r *AggregateReconciler[T]) read(ctx context.Context, config Config, req Request) (T, error) {
	actual := copyOf(r.Type)
	err := config.Get(ctx, req.NamespacedName, actual)
	if apierrs.IsNotFound(err) {
		return r.readUnseen(ctx, config, req)
	}
	if err != nil {
		return actual, err
	}
	known, _ := r.states.Of(actual).Resolve(actual, rtime.RetrieveNow(ctx)).(T)
	return known, nil
}

// readUnseen returns the object if the root created it and the cache does not show it yet. It asks the API server. If
// there is no such object, it returns an empty object of the name.
func (r *AggregateReconciler[T]) readUnseen(ctx context.Context, config Config, req Request) (T, error) {
	if known := r.states.Lookup(req.NamespacedName); known != nil {
		unseen, err := known.Unseen(ctx, config.APIReader, rtime.RetrieveNow(ctx))
		if alive, ok := unseen.(T); ok || err != nil {
			return alive, err
		}
	}
	absent := copyOf(r.Type)
	absent.SetNamespace(req.Namespace)
	absent.SetName(req.Name)
	return absent, nil
}

// remember keeps what the server answered last, so that a cache that lags behind is noticed. Version is the resource
// version that the object had when it was read.
func (r *AggregateReconciler[T]) remember(
	ctx context.Context, req Request, p *requestState, version string, managed T,
) {
	written := p.stored
	if !gotype.IsNil(managed) {
		// The next request finds an object with a UID. Without this, it would start with a new state.
		r.states.SetUID(req.NamespacedName, p.resource, managed.GetUID())
		written = managed
	}
	if written.GetResourceVersion() != version {
		p.resource.Wrote(written.DeepCopyObject().(client.Object), version == "", rtime.RetrieveNow(ctx))
	}
}
