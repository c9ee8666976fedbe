package reconcilers

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWrite is what an object manager knows of an object from its last write, or its last comparison.
type lastWrite struct {
	// desired is the hash of what was desired.
	desired desiredHash
	// version is the resource version at which the object agreed with what was desired.
	version string
	// additions are what the server adds to what is desired. They are nil if it adds nothing, or if that is not known.
	additions *Patch
	// accepted are the differences that an apply leaves.
	accepted managedfields.Differences
}

// agreed reports whether actual is still the very version that agreed with what is desired.
func (l lastWrite) agreed(actual client.Object) bool {
	return l.version != "" && l.version == actual.GetResourceVersion()
}

// sameVersion reports whether a and b are one version of an object, and not just two without a version.
func sameVersion(a, b client.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion()
}

// desiredHash identifies what is desired of an object: two equal hashes desire the same.
type desiredHash struct {
	digest uint64
	known  bool
}

// hashOfDesired returns the hash of desired. A value without a digest desires something new each time.
func hashOfDesired(desired any) desiredHash {
	sum, ok := digest.Of(desired)
	return desiredHash{digest: sum, known: ok}
}

// hashOfDesiredFor is hashOfDesired for an object that may be made from a copy of actual, as an aggregate is by
// default. Such an object repeats what the server and others say about it. Without what it repeats, its hash does not
// change whenever they say something else.
func hashOfDesiredFor(desired, actual client.Object) desiredHash {
	if desired.GetResourceVersion() == "" || desired.GetUID() != actual.GetUID() {
		return hashOfDesired(desired)
	}
	own := desired.DeepCopyObject().(client.Object)
	own.SetUID("")
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetCreationTimestamp(metav1.Time{})
	own.SetManagedFields(nil)
	// To repeat something is not the same as to want it gone.
	var repeats struct{ labels, annotations, status bool }
	if labels := own.GetLabels(); len(labels) > 0 && maps.Equal(labels, actual.GetLabels()) {
		own.SetLabels(nil)
		repeats.labels = true
	}
	if annotations := own.GetAnnotations(); len(annotations) > 0 && maps.Equal(annotations, actual.GetAnnotations()) {
		own.SetAnnotations(nil)
		repeats.annotations = true
	}
	if status := statusfield.Of(own); status.Exists() && !status.Differs(statusfield.Of(actual)) {
		status.Clear()
		repeats.status = true
	}
	return hashOfDesired([]any{own, repeats})
}

// newAdditions returns the difference between what was desired (merged into base) and what the server made of it. It
// applies to desired, whose generation is not the one of an object in the cluster.
func newAdditions(base, written, desired client.Object) (*Patch, error) {
	patch, err := NewPatch(base, written)
	if err != nil {
		return nil, err
	}
	if string(patch.bytes) == "[]" {
		return nil, nil
	}
	patch.generation = desired.GetGeneration()
	return patch, nil
}

// lastWrites are the last writes of one object manager, by the UID of the object. Below a root they belong to one
// resource, and a write that is not looked up in 64 requests in a row is dropped: its object is gone, or not managed by
// the tree any more.
type lastWrites struct {
	mu      sync.Mutex
	byUID   map[types.UID]usedWrite
	limit   int
	request uint64
}

type usedWrite struct {
	lastWrite
	// used is the request that looked it up last.
	used uint64
}

const (
	// maxIdleRequests is for how many requests in a row a write may go unused. An error or a halt keeps a request from
	// using all of them, and the next requests use them again.
	maxIdleRequests = 64
	// maxStandaloneWrites bounds the writes where there are no requests to count.
	maxStandaloneWrites = 4096
)

var _ resourcestate.Evictor = (*lastWrites)(nil)

// lastWritesOf returns the last writes that the root keeps for a manager with the reconciled resource, and the
// manager's own where there is no root.
func lastWritesOf(ctx context.Context, standalone *lastWrites) *lastWrites {
	if kept := stateOf(ctx); kept != nil {
		return resourcestate.LoadOrStore(kept, standalone, func() *lastWrites { return &lastWrites{} })
	}
	return standalone
}

// get returns the last write of an object, empty if there is none, or if something else was desired then.
func (w *lastWrites) get(uid types.UID, desired desiredHash) lastWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.byUID[uid]
	if !ok {
		return lastWrite{}
	}
	if write.used != w.request {
		write.used = w.request
		w.byUID[uid] = write
	}
	if !desired.known || write.desired != desired {
		return lastWrite{}
	}
	return write.lastWrite
}

// record notes that actual agrees with what is desired. An object without a UID, as tests have, is not recorded.
func (w *lastWrites) record(actual client.Object, desired desiredHash, last lastWrite) {
	uid := actual.GetUID()
	if uid == "" || !desired.known {
		return
	}
	last.desired = desired
	last.version = actual.GetResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUID == nil || w.limit > 0 && len(w.byUID) >= w.limit {
		w.byUID = map[types.UID]usedWrite{}
	}
	w.byUID[uid] = usedWrite{lastWrite: last, used: w.request}
}

func (w *lastWrites) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byUID, uid)
}

// Evict implements [resourcestate.Evictor].
func (w *lastWrites) Evict(time.Time) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, write := range w.byUID {
		if w.request-write.used > maxIdleRequests {
			delete(w.byUID, uid)
		}
	}
	w.request++
	return len(w.byUID) == 0
}
