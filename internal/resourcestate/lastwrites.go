package resourcestate

import (
	"maps"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/few"
	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LastWrite is what an object manager knows of an object from its last write, or its last comparison.
type LastWrite struct {
	desired Desired
	// Version is the resource version at which the object agreed with what was desired.
	Version string
	// Learned is what the object manager has learned from the answer. It is nil if that is nothing.
	Learned any
}

// Agreed reports whether actual is still the very version that agreed with what is desired.
func (l LastWrite) Agreed(actual client.Object) bool {
	return l.Version != "" && l.Version == actual.GetResourceVersion()
}

// SameVersion reports whether a and b are one version of an object, and not just two without a version.
func SameVersion(a, b client.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion()
}

// Desired identifies what is desired of an object: two equal values desire the same.
type Desired struct {
	digest uint64
	// Known is false for what has no digest: it is something new each time.
	Known bool
}

// DesiredOf identifies desired.
func DesiredOf(desired any) Desired {
	sum, ok := digest.Of(desired)
	return Desired{digest: sum, Known: ok}
}

// DesiredFor is [DesiredOf] for an object that may be made from a copy of actual, as an aggregate is by default. Such
// an object repeats what the server and others say about it. What it repeats does not count, so that it is not another
// one whenever they say something else.
func DesiredFor(desired, actual client.Object) Desired {
	if desired.GetResourceVersion() == "" || desired.GetUID() != actual.GetUID() {
		return DesiredOf(desired)
	}
	own := desired.DeepCopyObject().(client.Object)
	own.SetUID("")
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetCreationTimestamp(metav1.Time{})
	own.SetManagedFields(nil)
	// An object that repeats something differs from an object that lacks it.
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
	return DesiredOf([]any{own, repeats})
}

// LastWrites are the last writes of one object manager, by the UID of the object. Below a root they belong to one
// resource, and a write that is not looked up in 64 requests in a row is dropped: its object is gone, or not managed by
// the tree any more.
type LastWrites struct {
	// Limit bounds the writes where there are no requests to count; 0 for no limit.
	Limit int

	mu      sync.Mutex
	byUID   few.Map[types.UID, usedWrite]
	request uint64
}

type usedWrite struct {
	LastWrite
	// used is the request that looked it up last.
	used uint64
}

// maxIdleRequests is for how many requests in a row a write may go unused. An error or a halt keeps a request from
// using all of them, and the next requests use them again.
const maxIdleRequests = 64

var _ Evictor = (*LastWrites)(nil)

// Get returns the last write of an object, empty if there is none, or if something else was desired then.
func (w *LastWrites) Get(uid types.UID, desired Desired) LastWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.byUID.Get(uid)
	if !ok {
		return LastWrite{}
	}
	if write.used != w.request {
		write.used = w.request
		w.byUID.Put(uid, write)
	}
	if !desired.Known || write.desired != desired {
		return LastWrite{}
	}
	return write.LastWrite
}

// Record remembers that actual agrees with what is desired, and what was learned. An object without a UID, as in tests,
// is not recorded.
func (w *LastWrites) Record(actual client.Object, desired Desired, learned any) {
	uid := actual.GetUID()
	if uid == "" || !desired.Known {
		return
	}
	last := LastWrite{desired: desired, Version: actual.GetResourceVersion(), Learned: learned}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Limit > 0 && w.byUID.Len() >= w.Limit {
		w.byUID = few.Map[types.UID, usedWrite]{}
	}
	w.byUID.Put(uid, usedWrite{LastWrite: last, used: w.request})
}

// Forget drops what is known of an object that was deleted.
func (w *LastWrites) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byUID.Remove(uid)
}

// Evict implements [Evictor].
func (w *LastWrites) Evict(time.Time) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, write := range w.byUID.All() {
		if w.request-write.used > maxIdleRequests {
			w.byUID.Remove(uid)
		}
	}
	w.request++
	return w.byUID.Len() == 0
}

// Len returns the number of objects.
func (w *LastWrites) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byUID.Len()
}
