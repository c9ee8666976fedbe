package foreign

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// followAPIService checks twice before it deletes. The creation of instances cannot be fenced off, but the instances
// are not lost either: the server behind the APIService keeps them.
func (g *Guard) followAPIService(ctx context.Context, name string, uid types.UID, goal goal) (plan.Use, error) {
	none := plan.Use{State: plan.ForeignNone}
	object, err := g.read(ctx, kinds.APIService, name)
	if err != nil || object == nil {
		return none, err
	}
	if goal == goalDelete && (object.GetUID() != uid || object.GetDeletionTimestamp() != nil) {
		return none, nil
	}
	for _, margin := range []time.Duration{0, g.margin()} {
		if err := pause(ctx, time.After(margin)); err != nil {
			return plan.Use{}, err
		}
		use, err := g.instancesBehind(ctx, object)
		if err != nil || use.State != plan.ForeignNone || goal != goalDelete {
			return use, err
		}
	}
	err = g.delete(ctx, kinds.APIService, name, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		// It has another UID, so the object to delete is gone.
		err = nil
	}
	return none, err
}

// instancesBehind are the instances that others have of the types of an APIService.
func (g *Guard) instancesBehind(ctx context.Context, object *unstructured.Unstructured) (plan.Use, error) {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(object.Object, "spec", "version")
	gv := schema.GroupVersion{Group: group, Version: version}.String()
	// The discovery that the guard keeps is not used: the server may serve other types at the second check.
	api := discovery.ToDiscoveryInterfaceWithContext(g.Discovery)
	list, err := api.ServerResourcesForGroupVersionWithContext(ctx, gv)
	if err != nil {
		return plan.Use{}, explain(err, fmt.Sprintf("the types of %s could not be discovered", gv))
	}
	return g.scan(ctx, instantiable(list), g.limit()+1)
}
