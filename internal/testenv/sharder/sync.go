package sharder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// addSync adds the controller that checks the assignment of all objects of a ring: when a shard comes or goes, each
// period, and with back-off after an error.
func (s *Sharder) addSync(mgr ctrl.Manager) error {
	const shortest = 5 * time.Second
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortest, s.options.SyncPeriod)
	return forRings(mgr, "sharder", s.availabilityChanged()).
		WithOptions(controller.Options{RateLimiter: limiter}).
		Complete(reconcile.Func(s.sync))
}

func (s *Sharder) sync(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ring, _, err := s.ring(ctx, request.Name)
	if ring == nil || err != nil {
		return reconcile.Result{}, err
	}
	assignment, err := s.assignment(ctx, *ring)
	if err != nil {
		return reconcile.Result{}, err
	}
	namespaces, err := s.namespaces(ctx, *ring)
	if err != nil {
		return reconcile.Result{}, err
	}
	var all []error
	for _, main := range ring.Spec.Resources {
		all = append(all, s.syncResource(ctx, assignment, main.GroupResource, mainRole, namespaces))
		for _, controlled := range main.ControlledResources {
			all = append(all, s.syncResource(ctx, assignment, controlled, controlledRole, namespaces))
		}
	}
	return reconcile.Result{RequeueAfter: s.options.SyncPeriod}, errors.Join(all...)
}

// namespaces returns the names of the namespaces of a ring.
func (s *Sharder) namespaces(ctx context.Context, ring Ring) (sets.Set[string], error) {
	selector, err := metav1.LabelSelectorAsSelector(ring.namespaces())
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	list := &corev1.NamespaceList{}
	if err := s.seen.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the namespaces of ControllerRing %s: %w", ring.Name, err)
	}
	names := sets.Set[string]{}
	for _, namespace := range list.Items {
		names.Insert(namespace.Name)
	}
	return names, nil
}

// syncResource checks the assignment of the objects of a resource. Those that are in none of the namespaces are left
// alone: also cluster-scoped ones.
func (s *Sharder) syncResource(
	ctx context.Context, a Assignment, resource metav1.GroupResource, as role, namespaces sets.Set[string],
) error {
	kind, err := s.client.RESTMapper().KindFor(schema.GroupVersionResource{
		Group: resource.Group, Resource: resource.Resource,
	})
	if err != nil {
		return fmt.Errorf("find the kind of %s: %w", resource.String(), err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := s.options.Lists.List(ctx, list); err != nil {
		return fmt.Errorf("list %s: %w", resource.String(), err)
	}
	var all []error
	for i := range list.Items {
		obj := &list.Items[i]
		if !namespaces.Has(obj.Namespace) {
			continue
		}
		obj.SetGroupVersionKind(kind)
		move, err := a.sync(obj, as)
		if err == nil {
			err = s.carryOut(ctx, move, obj, a.ring.Name)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s %s: %w", resource.String(), client.ObjectKeyFromObject(obj), err))
		}
	}
	return errors.Join(all...)
}

// carryOut patches the labels of an object, if it is as it was listed.
func (s *Sharder) carryOut(ctx context.Context, m move, obj *metav1.PartialObjectMetadata, ring string) error {
	labels := map[string]any{DrainLabel(ring): "true"}
	switch m {
	case stay:
		return nil
	case reassign:
		labels = map[string]any{ShardLabel(ring): nil, DrainLabel(ring): nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.ResourceVersion, "labels": labels,
	}})
	if err != nil {
		return err
	}
	if err := s.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	return nil
}
