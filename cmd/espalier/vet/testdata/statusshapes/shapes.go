// Package statusshapes has shapes that status was not written from.
package statusshapes

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

type node = reconcilers.SubReconciler[*v1.Shop]

// Cache is a resource of the package's own.
type Cache struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status CacheStatus
}

// CacheStatus is its status.
type CacheStatus struct {
	apis.Status
	Ready int
	Phase string
}

// DeepCopyObject makes a Cache an object.
func (c *Cache) DeepCopyObject() runtime.Object {
	copied := *c
	return &copied
}

func (c *Cache) reset() {
	c.Status = CacheStatus{Phase: "Pending"} // want `.`
}

// A method of the resource.
var resets = espalier.Runs("Reset", func(_ context.Context, cache *Cache) error {
	cache.reset()
	return nil
})

// A method of the controller.
type controller struct{ generation int64 }

func (c *controller) observe(_ context.Context, shop *v1.Shop) error {
	shop.Status = v1.ShopStatus{Status: apis.Status{ObservedGeneration: c.generation}} // want `.`
	return nil
}

func (c *controller) Observe() node { return espalier.Runs("Observe", c.observe) }

// A helper that computes it, in a literal.
func statusOf(shop *v1.Shop) *v1.ShopStatus {
	return &v1.ShopStatus{Status: apis.Status{ObservedGeneration: shop.Generation}}
}

var computed = &reconcilers.SyncReconciler[*v1.Shop]{
	SyncWithResult: func(_ context.Context, shop *v1.Shop) (reconcilers.Result, error) {
		shop.Status = *statusOf(shop) // want `.`
		return reconcilers.Result{}, nil
	},
}

// By a pointer.
func pointed(_ context.Context, cache *Cache) error {
	status := &cache.Status
	*status = CacheStatus{} // want `.`
	status.Ready = 1
	return nil
}

var pointedNode = espalier.Runs("Pointed", pointed)

// In a helper of the package that is generic.
func set[S any](into *S, value S) {
	*into = value // want `.`
}

var generic = espalier.Runs("Generic", func(_ context.Context, cache *Cache) error {
	set(&cache.Status, CacheStatus{Ready: 1})
	return nil
})

// What a child reflects, by a shadowed variable.
var reflecting = &reconcilers.ChildReconciler[*v1.Shop, *appsv1.Deployment, *appsv1.DeploymentList]{
	DesiredChild:      desired,
	MergeBeforeUpdate: func(current, desired *appsv1.Deployment) { current.Spec = desired.Spec },
	ReflectChildStatusOnParentWithError: func(
		_ context.Context, parent *v1.Shop, child *appsv1.Deployment, err error,
	) error {
		if child != nil {
			parent := parent
			parent.Status = v1.ShopStatus{} // want `.`
		}
		return err
	},
}

func desired(_ context.Context, shop *v1.Shop) (*appsv1.Deployment, error) {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}, nil
}

// What is observed, of a set.
var observing = espalier.OwnsEach("Pods", func(context.Context, *Cache) ([]*corev1.Pod, error) {
	return nil, nil
}).Observes(func(_ context.Context, cache *Cache, live []*corev1.Pod) error {
	cache.Status = CacheStatus{Ready: len(live)} // want `.`
	return nil
})

// Around other nodes, and at the end.
var guarded = &reconcilers.TryCatch[*v1.Shop]{
	Try: computed,
	Catch: func(
		_ context.Context, shop *v1.Shop, result reconcilers.Result, err error,
	) (reconcilers.Result, error) {
		if err != nil {
			shop.Status = v1.ShopStatus{} // want `.`
		}
		return result, err
	},
	Finally: &reconcilers.SyncReconciler[*v1.Shop]{
		Sync: func(context.Context, *v1.Shop) error { return nil },
		Finalize: func(_ context.Context, shop *v1.Shop) error {
			defer func() { shop.Status = v1.ShopStatus{} }() // want `.`
			return nil
		},
	},
}

// A node of the package's own, below a feature.
type sizer struct{}

func (sizer) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (s sizer) Reconcile(_ context.Context, cache *Cache) (reconcilers.Result, error) {
	cache.Status = CacheStatus{Ready: 3} // want `.`
	return reconcilers.Result{}, nil
}

var sized = &feature.Feature[*Cache]{Name: "Size", Reconciler: sizer{}}

// A hook of a component.
var installed = &component.ComponentReconciler[*v1.Shop]{
	Hooks: generator.Hooks[*v1.Shop]{PostReconcile: []generator.Hook[*v1.Shop]{
		func(_ context.Context, _ client.Client, shop *v1.Shop) error {
			shop.Status = v1.ShopStatus{} // want `.`
			return nil
		},
	}},
}

// A cast resource.
var cast = &reconcilers.CastResource[*v1.Shop, *Cache]{
	Reconciler: &reconcilers.SyncReconciler[*Cache]{
		Sync: func(_ context.Context, cache *Cache) error {
			if cache.Status.Phase == "" {
				cache.Status = CacheStatus{Phase: "New"} // want `.`
			}
			return nil
		},
	},
}

// Near misses.

// Fields, and conditions.
var fields = espalier.Runs("Fields", func(ctx context.Context, cache *Cache) error {
	cache.Status.Ready, cache.Status.Phase = 1, "Ready"
	status := &cache.Status
	status.Phase = "Done"
	reconcilers.SetCondition(ctx, cache, metav1.Condition{Type: "Sized"})
	return nil
})

// Another object: a new one, a copy, a child.
var others = espalier.Owns("Deployment", func(_ context.Context, cache *Cache) (*appsv1.Deployment, error) {
	other := &Cache{}
	other.Status = CacheStatus{Ready: 1}
	copied := *cache
	copied.Status = CacheStatus{}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
	deployment.Status = appsv1.DeploymentStatus{}
	if equality.Semantic.DeepEqual(copied.Status, other.Status) {
		return nil, nil
	}
	return deployment, nil
})

// A deep copy, which is only compared.
var compared = espalier.Runs("Compared", func(_ context.Context, shop *v1.Shop) error {
	shop = shop.DeepCopy()
	shop.Status = v1.ShopStatus{}
	return nil
})

// A variable that is no field, and a status that is read, changed and put back.
var changed = espalier.Runs("Changed", func(_ context.Context, cache *Cache) error {
	empty := cache.Status
	empty = CacheStatus{}
	status := cache.Status
	status.Ready++
	cache.Status = status
	_ = empty
	return nil
})

// A reconciler without a tree owns its status.
type plain struct{ client.Client }

func (p *plain) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shop := &v1.Shop{}
	if err := p.Get(ctx, req.NamespacedName, shop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shop.Status = v1.ShopStatus{Status: apis.Status{ObservedGeneration: shop.Generation}}
	return reconcile.Result{}, p.Status().Update(ctx, shop)
}

// Limits: the resource may be replaced as a whole by what was read again.
var replaced = espalier.Runs("Replaced", func(_ context.Context, shop *v1.Shop) error {
	(&v1.Shop{}).DeepCopyInto(shop)
	return nil
})
