// Package clientsshapes has shapes that clients was not written from.
package clientsshapes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

type node = reconcilers.SubReconciler[*v1.Shop]

func secretOf(shop *v1.Shop) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
}

// An embedded client, and its status writer.
type controller struct {
	client.Client
	reader    client.Reader
	clientset kubernetes.Interface
	remote    clients
}

type clients struct{ writer client.Writer }

func (c *controller) touch(ctx context.Context, shop *v1.Shop) error {
	if err := c.Patch(ctx, secretOf(shop), client.MergeFrom(secretOf(shop))); err != nil { // want `.`
		return err
	}
	return c.Status().Update(ctx, shop) // want `.`
}

func (c *controller) Touch() node { return espalier.Runs("Touch", c.touch) }

// A field of a field, with an alias, in a literal.
func (c *controller) Remove() node {
	return &reconcilers.SyncReconciler[*v1.Shop]{
		Sync: func(context.Context, *v1.Shop) error { return nil },
		FinalizeWithResult: func(ctx context.Context, shop *v1.Shop) (reconcilers.Result, error) {
			writer := c.remote.writer
			return reconcilers.Result{}, client.IgnoreNotFound(writer.Delete(ctx, secretOf(shop))) // want `.`
		},
	}
}

// A parameter of the function that makes the node, and a config.
func Create(c client.Client, config reconcilers.Config) node {
	return espalier.Steps[*v1.Shop](
		espalier.Runs("Create", func(ctx context.Context, shop *v1.Shop) error {
			return c.Create(ctx, secretOf(shop)) // want `.`
		}),
		espalier.Runs("Update", func(ctx context.Context, shop *v1.Shop) error {
			return config.Update(ctx, secretOf(shop)) // want `.`
		}),
	)
}

// A client of the manager, through a helper.
func ensure(ctx context.Context, c client.Client, object client.Object) error {
	return c.Create(ctx, object)
}

func Ensure(mgr manager.Manager) node {
	return espalier.Runs("Ensure", func(ctx context.Context, shop *v1.Shop) error {
		return ensure(ctx, mgr.GetClient(), secretOf(shop)) // want `.`
	})
}

// A variable of the package, with the helper of controller-runtime.
var shared client.Client

var mutated = espalier.Runs("Mutated", func(ctx context.Context, shop *v1.Shop) error {
	secret := secretOf(shop)
	_, err := controllerutil.CreateOrUpdate(ctx, shared, secret, func() error { return nil }) // want `.`
	return err
})

// A clientset.
func (c *controller) evict(ctx context.Context, shop *v1.Shop) error {
	pods := c.clientset.CoreV1().Pods(shop.Namespace)
	return pods.Delete(ctx, shop.Name, metav1.DeleteOptions{}) // want `.`
}

func (c *controller) Evict() node { return espalier.Runs("Evict", c.evict) }

// A hook that does not take the client that it gets.
func (c *controller) Component() *component.ComponentReconciler[*v1.Shop] {
	return &component.ComponentReconciler[*v1.Shop]{
		Hooks: generator.Hooks[*v1.Shop]{PreDelete: []generator.Hook[*v1.Shop]{
			func(ctx context.Context, _ client.Client, shop *v1.Shop) error {
				return c.Delete(ctx, secretOf(shop)) // want `.`
			},
		}},
	}
}

// A node of the package's own.
type labeler struct{ writer client.Client }

func (l *labeler) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (l *labeler) Reconcile(ctx context.Context, shop *v1.Shop) (reconcilers.Result, error) {
	return reconcilers.Result{}, l.writer.Update(ctx, secretOf(shop)) // want `.`
}

var labels = espalier.Steps[*v1.Shop](&labeler{})

// A struct in a struct, whose method writes.
type repository struct{ client client.Client }

func (r repository) save(ctx context.Context, object client.Object) error {
	return r.client.Update(ctx, object) // want `.`
}

type keeper struct{ repository repository }

func (k *keeper) keep(ctx context.Context, shop *v1.Shop) error {
	return k.repository.save(ctx, secretOf(shop))
}

func (k *keeper) Keep() node { return espalier.Runs("Keep", k.keep) }

// Near misses.

// Reads.
func (c *controller) read(ctx context.Context, shop *v1.Shop) error {
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(shop), secretOf(shop)); err != nil {
		return err
	}
	if _, err := c.clientset.CoreV1().Pods(shop.Namespace).Get(ctx, shop.Name, metav1.GetOptions{}); err != nil {
		return err
	}
	return c.List(ctx, &corev1.SecretList{})
}

func (c *controller) Read() node { return espalier.Runs("Read", c.read) }

// The config on the context, with an alias and a helper.
var proper = espalier.Runs("Proper", func(ctx context.Context, shop *v1.Shop) error {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	var writer client.Writer = config
	if err := writer.Create(ctx, secretOf(shop)); err != nil {
		return err
	}
	if err := ensure(ctx, reconcilers.RetrieveOriginalConfigOrDie(ctx), secretOf(shop)); err != nil {
		return err
	}
	c := config.Client
	return c.Status().Update(ctx, shop)
})

// A set-up, and the config of another cluster.
func (c *controller) Setup(other reconcilers.Config) node {
	return &reconcilers.WithConfig[*v1.Shop]{
		Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return other, nil },
		Reconciler: &reconcilers.SyncReconciler[*v1.Shop]{
			Setup: func(ctx context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
				return mgr.GetClient().Create(ctx, &corev1.Namespace{})
			},
			Sync: func(ctx context.Context, shop *v1.Shop) error {
				return reconcilers.RetrieveConfigOrDie(ctx).Delete(ctx, secretOf(shop))
			},
		},
	}
}

// The client that a hook gets.
var hooked = generator.Hooks[*v1.Shop]{PreDelete: []generator.Hook[*v1.Shop]{
	func(ctx context.Context, c client.Client, shop *v1.Shop) error {
		return c.Delete(ctx, secretOf(shop))
	},
}}

// A reconciler without a tree.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (reconcile.Result, error) {
	return reconcile.Result{}, c.Delete(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name},
	})
}

// A store in memory is no client.
func Indexed(store cache.Store) node {
	return espalier.Runs("Indexed", func(_ context.Context, shop *v1.Shop) error {
		return store.Update(shop.DeepCopy())
	})
}

// What is called so, and is no client.
type queue struct{}

func (queue) Update(context.Context, string) error { return nil }

func (q queue) Node() node {
	return espalier.Runs("Queue", func(ctx context.Context, shop *v1.Shop) error { return q.Update(ctx, shop.Name) })
}

// Limits: what an interface of the package writes by is not known.
type store interface {
	Save(ctx context.Context, secret *corev1.Secret) error
}

// Saved returns a node.
func Saved(s store) node {
	return espalier.Runs("Saved", func(ctx context.Context, shop *v1.Shop) error {
		return s.Save(ctx, secretOf(shop))
	})
}
