// Package tracker remembers who wants to hear about what.
//
// A reconciler that reads an object it does not own says so to a [Tracker]: "tell Tenant default/acme when ConfigMap
// default/defaults changes". When an event for that ConfigMap arrives, the Tracker names the Tenants to enqueue. The
// object referred to need not exist yet: being told of its creation is the point.
//
//	err := tracker.TrackObject(configMap, tenant)      // while reconciling the tenant
//	tenants, err := tracker.GetObservers(configMap)    // when an event for a ConfigMap arrives
//
// # How long a reference lasts
//
// A root reconciler that brackets each of its requests in a round (see [Rounds]) says in every round all that the
// watcher wants to hear about. What it no longer says is dropped, what it says stays, however long the next round
// takes to come; and a watcher that is gone is forgotten. Outside of a round, a reference lasts for the lease given to
// [New], counted from when it was last made.
//
// # What it costs
//
// An event costs in proportion to those who watch the object it is about, not to all watchers. References by name are
// looked up; of the selectors only those are evaluated that ask for a label which the object has, or for none.
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

	// TrackObject makes obj, the watcher, an observer of the object that has the group, kind, namespace and name of
	// ref; the version does not matter. The kind is the one that ref carries, else the one that the scheme knows for
	// its type; it is an error if there is neither.
	TrackObject(ref client.Object, obj client.Object) error

	// GetObservers returns the watchers that refer to obj, by its name or by a selector that matches its labels: each
	// name once, sorted, whatever the kind of the watcher. Without any it returns an empty slice. It is an error if the
	// kind of obj is not known.
	GetObservers(obj client.Object) ([]types.NamespacedName, error)
}

// Rounds lets a watcher replace all its references at once, each time it is reconciled.
//
// The watcher is identified by group, kind, namespace and name, and by the controller of the view (see [Views]). The
// rounds of one watcher do not overlap; should one begin before the other ended, as after a panic, then nothing that
// either of them referred to is dropped at the end.
type Rounds interface {
	// BeginRound starts a round of obj. References that obj makes from here to the end of the round last beyond it
	// and have no lease. All that obj referred to before stays in force during the round.
	BeginRound(obj client.Object)

	// EndRound ends the round of obj; without one it does nothing. Complete tells whether the round got so far that obj
	// said all it wants to hear about: then every other reference of obj is dropped, leased ones included. After a
	// round that is not complete (it failed or was halted on the way) they stay in addition.
	EndRound(obj client.Object, complete bool)

	// Forget drops all that is remembered of obj as a watcher, in all clusters. Call it once obj is known to be gone.
	Forget(obj client.Object)
}

// KindObservers narrows the answer of a Tracker to watchers of one kind.
type KindObservers interface {
	// ObserversOfKind is GetObservers for watchers of the given group and kind alone. Watchers whose kind could not be
	// determined are included: to wake one in vain is cheaper than to miss one.
	ObserversOfKind(obj client.Object, watcher schema.GroupKind) ([]types.NamespacedName, error)
}

// Views gives views on a Tracker that share what it remembers. Use [InCluster] and [ForController] unless you
// implement a Tracker that wraps another.
type Views interface {
	// InCluster implements [InCluster].
	InCluster(cluster any) Tracker
	// ForController implements [ForController].
	ForController(name string) Tracker
}

// Sizer tells how much a Tracker remembers.
type Sizer interface {
	// Size returns the present size of the whole store, whichever view is asked. It does not count what has expired.
	Size() Size
}

// Size is how much a Tracker remembers.
type Size struct {
	// Watchers is the number of those who refer to something or have a round open.
	Watchers int
	// References is the number of references, counted once for each watcher that makes them.
	References int
}

// New returns an empty Tracker that keeps everything in memory.
//
// Scheme gives the kinds of objects that do not carry their own. Lease is how long a reference lasts that is made
// outside of a round (see [Rounds]); zero or less means that it lasts until its watcher drops it in a round or is
// forgotten. The lease is measured by the wall clock, since events, unlike requests, bring no time with them.
func New(scheme *runtime.Scheme, lease time.Duration) Tracker {
	return view{store: newStore(lease), scheme: scheme}
}

// InCluster returns a view on t in which the objects referred to, and those asked about, are objects of the given
// cluster. Watchers, and with them their rounds, belong to no cluster: a round that ends drops references to objects of
// all clusters.
//
// Cluster is any comparable identity, such as the cluster.Cluster itself; it panics if it is not comparable. Nil is the
// home cluster, which is also what the Tracker of [New] starts with. A Tracker that does not implement [Views] is
// returned as it is.
func InCluster(t Tracker, cluster any) Tracker {
	if v, ok := t.(Views); ok {
		return v.InCluster(cluster)
	}
	return t
}

// ForController returns a view on t for one of several controllers that share it. Controllers that reconcile the same
// kind each need their own: a round replaces what the watcher referred to in the same view, and what another controller
// referred to on behalf of the same object stays.
//
// References made through the view are those of the named controller. Asked for observers, the view returns those of
// this controller and those of none; a view of no controller, which is what the Tracker of [New] starts with and what
// the empty name gives, returns all. A Tracker that does not implement [Views] is returned as it is.
func ForController(t Tracker, name string) Tracker {
	if v, ok := t.(Views); ok {
		return v.ForController(name)
	}
	return t
}
