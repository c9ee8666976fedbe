// Package observe finds out what the cluster holds of the objects of a component. It watches the metadata of the
// objects that carry the owner label, with one watch for each type, and knows what the component's own requests
// returned. The newer of both counts.
//
// The life of an observation:
//
//   - [Watching.Observe] (watching.go) takes the interests of a component and keeps one entry for each object
//     (component_state.go).
//   - A new type is located by its definition or by discovery, and a goroutine watches it (watch_loop.go). Until the
//     watch has shown what there is, the type is in [Observation.Syncing]. A type that is not served is followed
//     until it is (discovery.go).
//   - Each event of a watch becomes a snapshot of the object (snapshot.go), for a Secret with keyed hashes of its
//     values (secret_data.go). It replaces the snapshot that the type keeps of the object (watched_type.go).
//   - Each entry of the object decides whether the event is news, and forgets what it is newer than (entry.go). News
//     wakes the component, unless it is paused (component_state.go).
//   - The next Observe returns for each object the newest of the snapshot and of what the last request returned
//     (entry.go). It reads objects by name or with a list only where neither says enough (read.go): a status, an object
//     of a type that cannot be watched, or an object that may exist without the label.
//     The status of an object that stays ready is read seldom, however often it changes (evaluation in entry.go).
//   - An object that is in the way and has no owner label is watched by its name (watch_names.go).
//   - An error is sorted by what it says about the type (errorclass.go).
//
// [Direct] (direct.go) is the observer without watches.
package observe

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/component/secretdata"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Interest is one object that a component wants to know about.
//
// UID and Fresh say what to do about an object that neither a watch nor a list shows. It may exist all the same: it may
// have lost its owner label, or the list may be older than the object.
//
//	UID    Fresh   the object
//	set    any     was seen, so it is read once by name
//	empty  false   may have been created by a request whose answer was lost, so it is read once by name
//	empty  true    was not created by this component, so it is absent, and no request is made
//
// A first roll-out makes no request to observe, since all of its objects are fresh.
type Interest struct {
	Key     plan.Key
	Version string
	// Dropped says that the record is dropped if there is no object. That an earlier request found none does not count
	// then: another process of the operator may have created the object since.
	Dropped bool
	// Confidential is true for a Secret. Data has the fingerprints of its desired data, by key.
	Confidential bool
	Data         map[string]secretdata.Fingerprint
	// Settings are the settings of the object's annotations. They are empty for an object that is not desired any more.
	Settings generator.Settings
	// Readiness asks how ready the object is. Static says that it is ready as soon as it exists.
	Readiness, Static bool
	// ReadOnly is true for an object that is not the component's, and whose status matters to it. It is watched by its
	// name, see WatchNames, and each change of it wakes the component, unless it is to be read later anyway.
	ReadOnly bool
	// Suspended says whether the object is suspended, in place of how ready it is; nil unless it is to be. It is not
	// asked about kinds that are ready as soon as they exist. It is called concurrently.
	Suspended func(live *unstructured.Unstructured) readiness.Result
	// Defines are the types that the object defines. As long as it is not established, the API server is not asked
	// whether it serves them.
	Defines []apis.ManagedType
	// Ending asks how the object ended if it is gone. The object is a Job.
	Ending bool
	// UID is the UID in the record of the object. It is empty if the object was never seen.
	UID types.UID
	// Fresh is true if this process first recorded the object, and has made no request since that may have created it.
	Fresh bool
}

// Component is the component on whose behalf objects are observed.
type Component struct {
	// Watcher is the resource to be woken.
	Watcher types.NamespacedName
	// Item tells the components of one resource apart that are of one node. It is empty if there is only one.
	Item string
	// UID is the UID of the resource. Nothing is kept from a resource with the same name and another UID.
	UID types.UID
	// OwnerID is the value of the owner label, Owner the clear text of the owner annotation.
	OwnerID, Owner string
	// Now is the time of the request.
	Now time.Time
}

// componentKey identifies a component from request to request.
type componentKey struct {
	types.NamespacedName
	item string
}

func (c Component) key() componentKey { return componentKey{c.Watcher, c.Item} }

// Observation is what is known of the objects that were asked for.
type Observation struct {
	Objects map[plan.Key]plan.Observed
	// Syncing are types whose watch has not shown yet what there is. The watcher is woken once it has.
	Syncing []schema.GroupKind
	// Polled are types that cannot be watched, with the reason in stable words. Their objects are read by name, and the
	// caller has to come back.
	Polled map[schema.GroupKind]string
	// Recheck is when the caller has to come back since an object is then read that counts as ready until then; zero if
	// there is none. No event of it wakes the component, unless more than its status has changed.
	Recheck time.Time
}

// Observer observes the objects of components. It is safe for concurrent use. The calls of Observe for one component
// wait for each other, except those of an observer that keeps no interests.
type Observer interface {
	// Observe returns what is known of the objects. It makes no request when nothing has changed since the last call.
	// It ends the interest in objects that the last call named and this one does not.
	Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error)
	// Unchanged reports whether Observe, with the interests of the last call, would return the same as then, but for
	// what Wrote and Deleted have recorded since. It is false if that is not certain without a request. It makes no
	// request, and costs nothing that grows with the number of objects, unless something has happened.
	Unchanged(c Component) bool
	// Wrote records the object that a write returned, and returns what it shows. It counts until something newer is
	// seen.
	Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed
	// Deleted records that the component deleted the object of that UID. If gone is false, the object may linger.
	Deleted(c Component, key plan.Key, uid types.UID, gone bool)
	// AwaitDeleted waits for a moment until the watches show what the component has deleted: that the objects are gone,
	// or linger. It reports whether watches show all objects that the last Observe named, so that another Observe makes
	// no request.
	AwaitDeleted(ctx context.Context, c Component) bool
	// WatchNames watches objects by name that are in the way of the component, until it is called again without them.
	// They are among those that the last Observe named. all reports whether a watch shows each of them, so that the
	// component is woken when one changes or goes; otherwise, the caller has to come back.
	WatchNames(c Component, keys []plan.Key) (all bool)
	// Managed returns the entries of the managed fields of an object that belong to the field manager and to no
	// subresource. It returns none if they may be out of date: the watch of the type is interrupted or there is none,
	// and the object was not read in the request of that time.
	Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry
	// Pause keeps the component from being woken until resume is called. On resume the component is woken if an event
	// arrived meanwhile that was not caused by its own writes and has not been returned by Observe. A request that
	// pauses while it works is not woken by its own writes, although the watch may show a write before the answer to it
	// is recorded.
	Pause(c Component) (resume func())
	// Release ends all interest of a component. Without a UID, c means any component with the name.
	Release(c Component)
}

// result returns how ready an object is, or whether it is suspended.
func (in *Interest) result(object *unstructured.Unstructured, evaluate Evaluate) readiness.Result {
	if in.Suspended != nil {
		return in.Suspended(object)
	}
	return evaluate(object, in.Settings)
}

// Evaluate returns how ready an object is.
type Evaluate func(object *unstructured.Unstructured, settings generator.Settings) readiness.Result
