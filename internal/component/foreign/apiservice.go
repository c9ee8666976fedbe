package foreign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func emptyAPIService(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiServiceKind.WithVersion("v1"))
	object.SetName(name)
	return object
}

// readAPIService returns nil if there is none.
func (g *Guard) readAPIService(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	object := emptyAPIService(name)
	if err := g.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, explain(err, fmt.Sprintf("APIService %s could not be read", name))
	}
	return object, nil
}

func (g *Guard) checkAPIService(ctx context.Context, name string) (plan.Use, error) {
	object, err := g.readAPIService(ctx, name)
	if err != nil || object == nil {
		return plan.Use{State: plan.ForeignNone}, err
	}
	return g.lookBehind(ctx, object)
}

// lookBehind looks at the instances of the types of an APIService.
func (g *Guard) lookBehind(ctx context.Context, object *unstructured.Unstructured) (plan.Use, error) {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(object.Object, "spec", "version")
	gv := schema.GroupVersion{Group: group, Version: version}
	// Not the discovery that is kept: what its server has may change until it is looked at the second time.
	list, err := discovery.ToDiscoveryInterfaceWithContext(g.Discovery).ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil {
		return plan.Use{}, explain(err, fmt.Sprintf("the types of %s could not be discovered", gv))
	}
	all := instantiable(list)
	slices.SortFunc(all, compareServed)
	return g.scan(ctx, all, g.limit()+1)
}

// deleteAPIService looks twice. There is no way to fence off creation, but the instances are not lost either: they are kept by the
// server behind it.
func (g *Guard) deleteAPIService(ctx context.Context, name string, uid types.UID) (plan.Use, error) {
	none := plan.Use{State: plan.ForeignNone}
	object, err := g.readAPIService(ctx, name)
	if err != nil || object == nil || object.GetUID() != uid || object.GetDeletionTimestamp() != nil {
		return none, err
	}
	if use, err := g.lookBehind(ctx, object); err != nil || use.State != plan.ForeignNone {
		return use, err
	}
	if err := pause(ctx, time.After(g.margin())); err != nil {
		return plan.Use{}, err
	}
	if use, err := g.lookBehind(ctx, object); err != nil || use.State != plan.ForeignNone {
		return use, err
	}
	err = g.Client.Delete(ctx, emptyAPIService(name), client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	// A conflict is another UID: the one meant is gone.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return plan.Use{}, fmt.Errorf("could not delete APIService %s: %w", name, err)
	}
	return none, nil
}
