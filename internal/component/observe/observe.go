// Package observe tells what the cluster holds of the objects of a component: from metadata-only watches that select the objects
// of all components of one prefix, one for each type, and from what was written last, whichever is newer.
package observe

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Interest is one object that a component wants to know about.
type Interest struct {
	Key     plan.Key
	Version string
	// Confidential: it is a Secret; Data is what is desired of its data, base64 as in the manifest. The values do not outlive the call.
	Confidential bool
	Data         map[string]string
	// Settings are those of its annotations; zero for one that is not desired any more.
	Settings component.Settings
	// Readiness: how ready it is matters.
	Readiness bool
	// Written is the generation that our last write returned.
	Written int64
	// UID is the one of the record; empty if it was never seen.
	UID types.UID
	// Fresh: the record of the object was first made by this process, and nothing was requested since that may have made it, so
	// nothing of ours can exist unseen. With neither this nor a UID, an object that no watch shows is looked for once.
	Fresh bool
}

// Component is on whose behalf objects are observed.
type Component struct {
	// Watcher is the resource to be woken.
	Watcher types.NamespacedName
	// UID is that of the resource: one of the same name with another UID starts anew.
	UID types.UID
	// OwnerID is the value of the owner label, Owner the clear text of the owner annotation.
	OwnerID, Owner string
	// Now is the time of the request.
	Now time.Time
}

// Observation is what is known of the objects that were asked for.
type Observation struct {
	Objects map[plan.Key]plan.Observed
	// Syncing are types whose watch has only begun: what is there is not known yet. The watcher is woken once it is.
	Syncing []schema.GroupKind
	// Polled are types that cannot be watched, with the reason in stable words. They are read by name, and the caller has to come
	// back.
	Polled map[schema.GroupKind]string
}

// Observer tells what there is. It is safe for concurrent use. The Observes of one component wait for each other, but for those
// that are read-only.
type Observer interface {
	// Observe returns what is known of the objects. It makes no request when nothing has changed since the last call. The
	// types that the component is not interested in any more are not watched for it any longer.
	Observe(ctx context.Context, c Component, interests []Interest) (*Observation, error)
	// Wrote notes the answer to a write, which is believed until something newer is seen, and returns what it shows.
	Wrote(c Component, interest Interest, object *unstructured.Unstructured) plan.Observed
	// Deleted notes that the object of that UID was deleted by us. gone tells that it does not exist any more; else it may linger.
	Deleted(c Component, key plan.Key, uid types.UID, gone bool)
	// Managed returns the managed fields entries of ours, without subresources, of an object. There are none if what is known of
	// it may be old: its watch is interrupted, or its type cannot be watched, and it was not read in the request of that time.
	Managed(c Component, key plan.Key) []metav1.ManagedFieldsEntry
	// Pause keeps the component from being woken until resume is called: it is then woken if something was seen in between
	// that neither an Observe since nor a Wrote or Deleted explains. A request that brackets its work with it is not woken by
	// what it writes itself, although the watch may show a write before the answer to it is noted.
	Pause(c Component) (resume func())
	// Release ends all interest of a component. Without a UID, it is that of whichever component has the name.
	Release(c Component)
}

// Evaluate tells how ready an object is.
type Evaluate func(object *unstructured.Unstructured, settings component.Settings) readiness.Result
