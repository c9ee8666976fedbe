// Package tracker remembers which resources are to be reconciled when another object changes.
//
// A reconciler that reads an object that it does not own records that in a [Tracker], for example that the Tenant
// default/acme depends on the ConfigMap default/defaults. When an event for the ConfigMap arrives, the Tracker returns
// the names of the Tenants to enqueue. The object need not exist yet, so that its creation is noticed too.
//
//	err := tracker.TrackObject(configMap, tenant)      // while reconciling the tenant
//	tenants, err := tracker.GetObservers(configMap)    // when an event for a ConfigMap arrives
//
// # How long a reference lasts
//
// A root reconciler begins a round (see [Rounds]) before each request and ends it afterwards. References that the
// watcher did not make in its last complete round are dropped. References that it made stay until its next round,
// however late that is. A watcher that is gone is forgotten. Outside of a round, a reference lasts for the lease given
// to [New], counted from when it was last made.
//
// # What it costs
//
// An event costs in proportion to the watchers of its object, not to all watchers. References by name are looked up. Of
// the selectors, only those are evaluated that need a label which the object has, or no label.
package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker remembers which watchers refer to which objects. Implementations are safe for concurrent use.
//
// The Tracker that [New] returns also implements [Rounds], [KindObservers], [Views] and [Sizer]. They are interfaces of
// their own, so that a Tracker is quick to implement; probe for them with a type assertion.
type Tracker interface {
	// TrackReference makes obj, the watcher, an observer of what ref refers to. To do so again renews the reference.
	// It returns an error, and tracks nothing, if ref is invalid: its text starts with "invalid Reference:" and has one
	// line for each problem.
	TrackReference(ref Reference, obj client.Object) error

	// TrackObject makes obj, the watcher, an observer of the object with the group, kind, namespace and name of ref.
	// The version does not matter. The kind is the one in ref, or else the one that the scheme has for its type. It is
	// an error if there is neither.
	TrackObject(ref client.Object, obj client.Object) error

	// GetObservers returns the watchers that refer to obj, by its name or by a selector that matches its labels. The
	// names are sorted, without duplicates, and independent of the kind of the watcher. If there are none, the slice is
	// empty. It is an error if the kind of obj is not known.
	GetObservers(obj client.Object) ([]types.NamespacedName, error)
}

// Rounds lets a watcher replace all its references at once, each time it is reconciled.
//
// The watcher is identified by group, kind, namespace and name, and by the controller of the view (see [Views]). The
// rounds of one watcher do not overlap. If one begins before the other has ended, as after a panic, then the end drops
// nothing that either of them referred to.
type Rounds interface {
	// BeginRound starts a round of obj. References that obj makes during the round have no lease. All earlier
	// references of obj stay in force during the round.
	BeginRound(obj client.Object)

	// EndRound ends the round of obj. Without a round it does nothing. If complete is true, all references of obj that
	// were not made in the round are dropped, leased ones included. If it is false, because the request failed or was
	// halted, they stay.
	EndRound(obj client.Object, complete bool)

	// Forget drops all references of obj as a watcher, in all clusters. Call it once obj is known to be gone.
	Forget(obj client.Object)
}

// KindObservers narrows the answer of a Tracker to watchers of one kind.
type KindObservers interface {
	// ObserversOfKind returns the watchers of the given group and kind, otherwise like GetObservers. It includes
	// watchers whose kind is not known, because to enqueue one too many is cheaper than to miss one.
	ObserversOfKind(obj client.Object, watcher schema.GroupKind) ([]types.NamespacedName, error)
}

// Views gives views of a Tracker that share its references. Use [InCluster] and [ForController] unless you implement a
// Tracker that wraps another.
type Views interface {
	// InCluster implements [InCluster].
	InCluster(cluster any) Tracker
	// ForController implements [ForController].
	ForController(name string) Tracker
}

// Sizer reports how much a Tracker remembers.
type Sizer interface {
	// Size returns the present size of the whole store, whichever view is asked. It does not count what has expired.
	Size() Size
	// Kinds returns how many references there are to objects of each kind. It looks at all of them.
	Kinds() map[schema.GroupKind]int
}

// Size is how much a Tracker remembers.
type Size struct {
	// Watchers is the number of watchers that refer to something or have a round open.
	Watchers int
	// References is the number of references, counted once for each watcher that makes them.
	References int
}

// New returns an empty Tracker that keeps everything in memory.
//
// The scheme is used for the kinds of objects that do not contain their own. The lease is how long a reference lasts
// that is made outside of a round (see [Rounds]). Zero or less means that it lasts until its watcher drops it in a
// round or is forgotten. The lease is measured by the wall clock, because events, unlike requests, have no time of
// their own.
func New(scheme *runtime.Scheme, lease time.Duration) Tracker {
	return view{store: newStore(lease), scheme: scheme}
}

// InCluster returns a view of t for objects of the given cluster: the objects that references name, and those that
// observers are asked for. Watchers and their rounds belong to no cluster, so the end of a round drops references to
// objects of all clusters.
//
// The cluster is any comparable identity, such as the cluster.Cluster itself. InCluster panics if it is not comparable.
// Nil is the home cluster, which the Tracker of [New] starts with. A Tracker that does not implement [Views] is
// returned as it is.
func InCluster(t Tracker, cluster any) Tracker {
	if v, ok := t.(Views); ok {
		return v.InCluster(cluster)
	}
	return t
}

// ForController returns a view of t for one of several controllers that share it. Controllers that reconcile the same
// kind each need their own view: a round replaces the references that the watcher made in the same view, and keeps the
// references that another controller made for the same object.
//
// GetObservers of the view returns the watchers of this controller and those of views without a controller. A view
// without a controller returns all. The Tracker of [New] has no controller, nor has a view with an empty name. A
// Tracker that does not implement [Views] is returned as it is.
func ForController(t Tracker, name string) Tracker {
	if v, ok := t.(Views); ok {
		return v.ForController(name)
	}
	return t
}
