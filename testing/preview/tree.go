package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/validation"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Tree returns the objects that a whole tree keeps for a resource, with all gates, switches and edits, for Render:
//
//	Render: func(v Values) ([]client.Object, error) {
//		return preview.Tree(controller.New, rtesting.Rollout[*v1.Shop]{
//			Scheme: scheme, Resource: v.shop(), GivenObjects: []client.Object{license},
//		})
//	},
//
// Root makes a root for the config of an API server in memory, see [rtesting.NodeTests]. A function that calls
// espalier.For makes one of nodes. Tree validates the root, and lets it make requests until one changes nothing. The
// rollout has the resource, what exists beside it, such as what a node reads, and the time of all requests. The root
// takes the place of its Reconciler.
//
// The Complete of the rollout says which objects are ready. Default: [rtesting.MakeReady], so that nodes that wait for
// other objects run. A function that does nothing shows what is there before anything is ready. A node that waits for
// what never comes keeps nothing, and this is no error.
//
// The objects are those that exist in the end and were not given, beside the resource, in order of group, kind,
// namespace and name. They are unstructured. They have what the API server fills in for the fields that nobody sets,
// and their owner references, but no status, and no UID, version, generation, time of creation or managed fields. It is
// an error if a request fails, if changes do not end, and if a component of the resource is not ready in the end.
func Tree[Type client.Object](
	root func(config reconcilers.Config) *reconcilers.ResourceReconciler[Type], rollout rtesting.Rollout[Type],
) ([]client.Object, error) {
	switch {
	case root == nil:
		return nil, errors.New("a Tree needs a function that returns its root")
	case !gotype.IsNil(rollout.Reconciler):
		return nil, errors.New("the Rollout of a Tree has a Reconciler: leave it out, the root takes its place")
	}
	rollout.Reconciler = &rootNode[Type]{makes: root}
	if rollout.Complete == nil {
		rollout.Complete = rtesting.MakeReady
	}
	done, err := rollout.Try()
	if err != nil {
		return nil, err
	}
	made := done.Made()
	for i, obj := range made {
		if made[i], err = withoutServerFields(obj, rollout.Scheme); err != nil {
			return nil, fmt.Errorf("%s: %w", objectname.Of(obj), err)
		}
	}
	return made, nil
}

// withoutServerFields returns an object without its status and without the metadata that only an API server sets.
func withoutServerFields(obj client.Object, known *runtime.Scheme) (client.Object, error) {
	kind, err := apiutil.GVKForObject(obj, known)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	bare := &unstructured.Unstructured{Object: content}
	bare.SetGroupVersionKind(kind)
	return bare, nil
}

// rootNode is a node that has a root handle the request for its resource.
type rootNode[Type client.Object] struct {
	makes func(config reconcilers.Config) *reconcilers.ResourceReconciler[Type]
	// made is nil before the first request.
	made *reconcilers.ResourceReconciler[Type]
}

// SetupWithManager is not called: a roll-out has no manager.
func (*rootNode[Type]) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

// Reconcile makes one request, and reads the resource as the root left it.
func (n *rootNode[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return reconcilers.Result{}, err
	}
	if n.made == nil {
		if n.made = n.makes(config); n.made == nil {
			return reconcilers.Result{}, errors.New("the function of the Tree returned no root")
		}
		if err := n.made.Validate(validation.WithRecursive(ctx)); err != nil {
			return reconcilers.Result{}, err
		}
	}
	key := client.ObjectKeyFromObject(resource)
	if _, err := n.made.Reconcile(ctx, reconcilers.Request{NamespacedName: key}); err != nil {
		return reconcilers.Result{}, err
	}
	return reconcilers.Result{}, config.Get(ctx, key, resource)
}
