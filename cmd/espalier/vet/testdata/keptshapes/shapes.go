// Package keptshapes has shapes that kept was not written from.
package keptshapes

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/objects"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

type node = reconcilers.SubReconciler[*v1.Shop]

func send(context.Context, *v1.Shop) {}

// A map in a field.
type registry struct {
	mu    sync.Mutex
	shops map[string]*v1.Shop
	names map[string]types.NamespacedName
	queue chan *v1.Shop
	cache sync.Map
	last  atomic.Pointer[v1.Shop]
	base
}

type base struct{ ctx context.Context }

type entry struct {
	shop *v1.Shop
	at   time.Time
}

func (r *registry) register(_ context.Context, shop *v1.Shop) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shops[shop.Name] = shop // want `.`
	return nil
}

func (r *registry) Register() node { return espalier.Runs("Register", r.register) }

// A slice of the package, through a helper.
var all []*v1.Shop

func remember(shop *v1.Shop) {
	all = append(all, shop) // want `.`
}

var rememberNode = &reconcilers.SyncReconciler[*v1.Shop]{
	Sync: func(_ context.Context, shop *v1.Shop) error {
		remember(shop)
		return nil
	},
}

// Goroutines that nobody waits for: a closure, and a call.
func (r *registry) notify(ctx context.Context, shop *v1.Shop) error {
	go func() { // want `.`
		send(context.Background(), shop)
	}()
	go send(context.WithoutCancel(ctx), shop) // want `.`
	return nil
}

func (r *registry) Notify() node {
	return &reconcilers.SyncReconciler[*v1.Shop]{Name: "Notify", Sync: r.notify}
}

// A channel in a field.
func (r *registry) enqueue(_ context.Context, shop *v1.Shop) error {
	select { // want `.`
	case r.queue <- shop:
	default:
	}
	return nil
}

func (r *registry) Enqueue() node { return espalier.Runs("Enqueue", r.enqueue) }

// An embedded field holds the context.
func (r *registry) begin(ctx context.Context, _ *v1.Shop) (context.Context, reconcilers.Result, error) {
	r.ctx = ctx // want `.`
	return ctx, reconcilers.Result{}, nil
}

func (r *registry) Begin(inner node) node {
	return &reconcilers.Advice[*v1.Shop]{Before: r.begin, Reconciler: inner}
}

// A sync.Map and an atomic pointer.
func (r *registry) publish(_ context.Context, shop *v1.Shop) error {
	r.cache.Store(shop.UID, shop) // want `.`
	r.last.Store(shop)            // want `.`
	return nil
}

func (r *registry) Publish() node { return espalier.Runs("Publish", r.publish) }

// A variable of the function that makes the node, and a struct that holds the resource.
func Counted() node {
	var last *v1.Shop
	var entries []entry
	return espalier.Runs("Counted", func(_ context.Context, shop *v1.Shop) error {
		if last == nil || last.Generation != shop.Generation {
			last = shop // want `.`
		}
		entries = append(entries, entry{shop: shop, at: time.Now()}) // want `.`
		return nil
	})
}

// A timer.
func delayed(_ context.Context, shop *v1.Shop) error {
	time.AfterFunc(time.Minute, func() { // want `.`
		send(context.Background(), shop)
	})
	return nil
}

var delayedNode = espalier.Runs("Delayed", delayed)

// Objects that the program keeps: a variable, a field, and an entry of a map.
var template = &corev1.ConfigMap{Data: map[string]string{"a": "b"}}

func shared(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	object := template
	object.Namespace, object.Name = shop.Namespace, shop.Name
	return object, nil // want `.`
}

var sharedNode = espalier.Owns("Shared", shared)

type templates struct {
	secret *corev1.Secret
	byName map[string]*corev1.Secret
}

func (t *templates) desired(_ context.Context, shop *v1.Shop) (*corev1.Secret, error) {
	if cached, ok := t.byName[shop.Name]; ok {
		return cached, nil // want `.`
	}
	return t.secret, nil // want `.`
}

func (t *templates) Secret() node { return espalier.Owns("Secret", t.desired) }

// A live object that is changed by functions that look at it.
var observing = espalier.Owns("Deployment", deployment).
	Observes(func(_ context.Context, shop *v1.Shop, live *appsv1.Deployment) error {
		if live == nil {
			return nil
		}
		live.Annotations["seen"] = "true" // want `.`
		shop.Status.ObservedGeneration = live.Generation
		return nil
	}).
	Health(func(live *appsv1.Deployment) apis.Health {
		live.Spec.Replicas = nil // want `.`
		return apis.Health{}
	})

func deployment(_ context.Context, shop *v1.Shop) (*appsv1.Deployment, error) {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}, nil
}

// The same in a literal, through a helper and a setter.
func strip(object *corev1.Secret) {
	object.ManagedFields = nil // want `.`
}

var reflecting = &reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]{
	DesiredChild: func(_ context.Context, shop *v1.Shop) (*corev1.Secret, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}, nil
	},
	MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
	ReflectChildStatusOnParent: func(_ context.Context, _ *v1.Shop, child *corev1.Secret, err error) {
		if err == nil {
			strip(child)
			child.SetLabels(nil) // want `.`
		}
	},
}

// The children of a set, in a loop.
var reflectingSet = &reconcilers.ChildSetReconciler[*v1.Shop, *corev1.ConfigMap, *corev1.ConfigMapList]{
	DesiredChildren: func(context.Context, *v1.Shop) ([]*corev1.ConfigMap, error) { return nil, nil },
	ReflectChildrenStatusOnParent: func(
		_ context.Context, _ *v1.Shop, result reconcilers.ChildSetResult[*corev1.ConfigMap],
	) {
		for _, child := range result.Existing() {
			child.Data = nil // want `.`
		}
	},
}

// A node of the package's own.
type tracer struct{ seen []client.Object }

func (t *tracer) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (t *tracer) Reconcile(_ context.Context, shop *v1.Shop) (reconcilers.Result, error) {
	t.seen = append(t.seen, shop) // want `.`
	return reconcilers.Result{}, nil
}

var tree = espalier.Steps[*v1.Shop](&tracer{})

// A function that is kept has what it captures.
type undo struct{ steps []func() }

func (u *undo) note(_ context.Context, shop *v1.Shop) error {
	u.steps = append(u.steps, func() { send(context.Background(), shop) }) // want `.`
	return nil
}

func (u *undo) Note() node { return espalier.Runs("Note", u.note) }

// A set of objects that the program keeps.
var fixed = map[string]*corev1.ConfigMap{}

var fixedNode = espalier.OwnsEach("Fixed", func(context.Context, *v1.Shop) ([]*corev1.ConfigMap, error) {
	var objects []*corev1.ConfigMap
	for _, object := range fixed {
		objects = append(objects, object)
	}
	return objects, nil // want `.`
})

// Near misses.

// A function that is called before the end, and copies of a set.
func (u *undo) call(ctx context.Context, shop *v1.Shop) error {
	var steps []func()
	steps = append(steps, func() { send(ctx, shop) })
	for _, step := range steps {
		step()
	}
	name := shop.Name
	u.steps = append(u.steps, func() { println(name) })
	return nil
}

func (u *undo) Call() node { return espalier.Runs("Call", u.call) }

var copiedNode = espalier.OwnsEach("Fixed", func(context.Context, *v1.Shop) ([]*corev1.ConfigMap, error) {
	objects := make([]*corev1.ConfigMap, 0, len(fixed))
	for _, object := range fixed {
		objects = append(objects, object.DeepCopy())
	}
	return objects, nil
})

// What is kept is a name, a copy, or a number.
func (r *registry) named(_ context.Context, shop *v1.Shop) error {
	r.names[string(shop.UID)] = client.ObjectKeyFromObject(shop)
	r.last.Store(shop.DeepCopy())
	copied := shop.DeepCopy()
	r.shops[shop.Name] = copied
	all = append(all, shop.DeepCopy())
	r.queue <- shop.DeepCopy()
	return nil
}

func (r *registry) Named() node { return espalier.Runs("Named", r.named) }

// Goroutines that the function waits for: a group, an error group, a channel.
func (r *registry) parallel(ctx context.Context, shop *v1.Shop) error {
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			send(ctx, shop)
		}()
	}
	wg.Wait()

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		send(groupCtx, shop)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		send(ctx, shop)
	}()
	<-done
	return nil
}

func (r *registry) Parallel() node { return espalier.Runs("Parallel", r.parallel) }

// A goroutine that gets a copy.
func background(_ context.Context, shop *v1.Shop) error {
	shop = shop.DeepCopy()
	go send(context.Background(), shop)
	name := shop.Name
	go func() { println(name) }()
	return nil
}

var backgroundNode = espalier.Runs("Background", background)

// Variables, structs and channels of the call itself.
func local(ctx context.Context, shop *v1.Shop) error {
	type call struct {
		ctx  context.Context
		shop *v1.Shop
	}
	c := &call{ctx: ctx, shop: shop}
	byName := map[string]*v1.Shop{}
	byName[shop.Name] = c.shop
	queue := make(chan *v1.Shop, 1)
	queue <- shop
	defer func() { send(c.ctx, <-queue) }()
	return nil
}

var localNode = espalier.Runs("Local", local)

// A value of the request.
var current = stash.New[*v1.Shop]("shop.example.com/current")

func stashed(ctx context.Context, shop *v1.Shop) error {
	current.Store(ctx, shop)
	return nil
}

var stashedNode = espalier.Runs("Stashed", stashed)

// Copies of what the program keeps.
func (t *templates) copied(_ context.Context, shop *v1.Shop) (*corev1.Secret, error) {
	object := t.secret.DeepCopy()
	object.Namespace, object.Name = shop.Namespace, shop.Name
	if cached := t.byName[shop.Name]; cached != nil {
		object = cached.DeepCopy()
	}
	return object, nil
}

func (t *templates) Copied() node { return espalier.Owns("Copied", t.copied) }

// A copy of the live object is changed, and the resource.
var copying = espalier.Owns("Deployment", deployment).
	Observes(func(_ context.Context, shop *v1.Shop, live *appsv1.Deployment) error {
		if live == nil {
			return nil
		}
		live = live.DeepCopy()
		live.ManagedFields = nil
		shop.Status.ObservedGeneration = live.Generation
		labels := live.Labels
		labels = nil
		_ = labels
		return nil
	})

// A function that makes a part of an object, for a function of another package.
var held = espalier.Owns("Held", objects.Secret(nameOf, dataOf))

func nameOf(shop *v1.Shop) string { return shop.Name }

var texts = map[string][]byte{"a": []byte("b")}

func dataOf(context.Context, *v1.Shop) (map[string][]byte, error) { return texts, nil }

// A helper that others of the package give other objects.
func marked(object *corev1.ConfigMap) *corev1.ConfigMap {
	object.Labels = map[string]string{"marked": "true"}
	return object
}

func firstMarked(_ context.Context, shop *v1.Shop) (*corev1.ConfigMap, error) {
	return marked(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "first"}}), nil
}

func secondMarked(_ context.Context, shop *v1.Shop) ([]*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "second"}}
	return []*corev1.ConfigMap{marked(object)}, nil
}

var markedNodes = espalier.Steps[*v1.Shop](
	espalier.Owns("First", firstMarked), espalier.OwnsEach("Second", secondMarked),
)

// The result of a set is a copy, and only its children are not.
var filtering = &reconcilers.ChildSetReconciler[*v1.Shop, *corev1.ConfigMap, *corev1.ConfigMapList]{
	DesiredChildren: func(context.Context, *v1.Shop) ([]*corev1.ConfigMap, error) { return nil, nil },
	ReflectChildrenStatusOnParent: func(
		_ context.Context, shop *v1.Shop, result reconcilers.ChildSetResult[*corev1.ConfigMap],
	) {
		result.Children = slices.Clone(result.Children)
		existing := result.Existing()
		shop.Status.ObservedGeneration = int64(len(existing))
	},
}

// A resource may be changed by its own node, and MergeBeforeUpdate changes what is current.
var defaulting = espalier.Runs("Defaults", func(_ context.Context, shop *v1.Shop) error {
	if shop.Spec.Replicas == 0 {
		shop.Spec.Replicas = 1
	}
	return nil
})

// Limits: what a function of another package keeps is not known.
var recent = list.New()

var listed = espalier.Runs("Listed", func(_ context.Context, shop *v1.Shop) error {
	recent.PushBack(shop)
	return nil
})
