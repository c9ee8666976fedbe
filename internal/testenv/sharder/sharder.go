package sharder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options say how a sharder runs.
type Options struct {
	// Webhook says how the API server calls [Sharder.Webhook]. The path of a ring is added to it. Required.
	Webhook admissionregistrationv1.WebhookClientConfig
	// SyncPeriod is how often the assignment of all objects is checked. 0 is 5 minutes.
	SyncPeriod time.Duration
	// Lists reads the objects of rings for a sync. Nil lists them from the API server at resource version 0. Something
	// older shows what the watch cache of an API server may answer then.
	Lists client.Reader
}

// syncPeriod is the period of a sharder that says none.
const syncPeriod = 5 * time.Minute

// Sharder assigns the objects of all rings to shards.
type Sharder struct {
	options Options
	client  client.Client
	// seen has what the caches of the manager show: rings, Leases and namespaces.
	seen client.Reader
	now  func() time.Time
}

// New returns a sharder whose controllers it adds to a manager. The scheme of the manager needs the kinds of
// Kubernetes. [Sharder.Webhook] has to be served by the caller.
func New(mgr ctrl.Manager, options Options) (*Sharder, error) {
	if options.Lists == nil {
		options.Lists = atVersionZero{mgr.GetAPIReader()}
	}
	options.SyncPeriod = cmp.Or(options.SyncPeriod, syncPeriod)
	s := &Sharder{options: options, client: mgr.GetClient(), seen: mgr.GetCache(), now: time.Now}
	if err := errors.Join(s.addLeases(mgr), s.addRings(mgr), s.addSync(mgr)); err != nil {
		return nil, fmt.Errorf("add the controllers of the sharder: %w", err)
	}
	return s, nil
}

// ringObject returns an empty ControllerRing.
func ringObject() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(RingKind)
	return obj
}

// ring returns the ring of a name, nil if there is none.
func (s *Sharder) ring(ctx context.Context, name string) (*Ring, *unstructured.Unstructured, error) {
	obj := ringObject()
	if err := s.seen.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	ring, err := NewRing(obj)
	return &ring, obj, err
}

// leases returns the Leases of a ring.
func (s *Sharder) leases(ctx context.Context, ring Ring) ([]coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	err := s.seen.List(ctx, list, client.MatchingLabelsSelector{Selector: ring.leases()})
	return list.Items, err
}

// assignment returns the assignment of a ring now.
func (s *Sharder) assignment(ctx context.Context, ring Ring) (Assignment, error) {
	leases, err := s.leases(ctx, ring)
	return NewAssignment(ring, leases, s.now()), err
}

// forRings builds a controller of rings, which runs for a new ring, for a changed spec, and for Leases that pass a
// predicate.
func forRings(mgr ctrl.Manager, name string, ofLeases predicate.Predicate) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).Named(name).
		For(ringObject(), builder.WithPredicates(specChanged)).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(ringOf),
			builder.WithPredicates(predicate.NewPredicateFuncs(isShards), ofLeases))
}

// specChanged passes rings that are new, or whose spec changed.
var specChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// isShards reports whether a Lease is that of a shard.
func isShards(lease client.Object) bool { return lease.GetLabels()[RingLabel] != "" }

// ringOf returns the request for the ring of a Lease.
func ringOf(_ context.Context, lease client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: lease.GetLabels()[RingLabel]}}}
}

// availabilityChanged passes Leases whose shard becomes available, or is not any more.
func (s *Sharder) availabilityChanged() predicate.Funcs {
	available := func(obj client.Object) bool {
		lease, ok := obj.(*coordinationv1.Lease)
		return ok && StateOf(lease, s.now()).available()
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return available(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return available(e.ObjectOld) != available(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return e.DeleteStateUnknown || available(e.Object) },
	}
}

// atVersionZero lists what an API server has in its watch cache, which may be old.
type atVersionZero struct{ client.Reader }

// List implements [client.Reader].
func (r atVersionZero) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(options, versionZero{})...)
}

// versionZero is the option for a list at resource version 0.
type versionZero struct{}

// ApplyToList implements [client.ListOption].
func (versionZero) ApplyToList(options *client.ListOptions) {
	options.Raw = &metav1.ListOptions{ResourceVersion: "0"}
}
