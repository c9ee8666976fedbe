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
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
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
	// An object that repeats something has another hash than an object that lacks it.
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
	// flapping is what is known of the changes of what is desired; nil if the object was not updated yet.
	flapping *flapping
}

const (
	// maxIdleRequests is for how many requests in a row a write may go unused. An error or a halt keeps a request from
	// using all of them, and the next requests use them again.
	maxIdleRequests = 64
	// maxStandaloneWrites bounds the writes where there are no requests to count.
	maxStandaloneWrites = 4096
)

var _ resourcestate.Evictor = (*lastWrites)(nil)

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

// record remembers that actual agrees with what is desired. An object without a UID, as in tests, is not recorded.
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
	w.byUID[uid] = usedWrite{lastWrite: last, used: w.request, flapping: w.byUID[uid].flapping}
}

// flapping returns what is known of the changes of what is desired of an object, or nil.
func (w *lastWrites) flapping(uid types.UID) *flapping {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byUID[uid].flapping
}

func (w *lastWrites) setFlapping(uid types.UID, known *flapping) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUID == nil {
		w.byUID = map[types.UID]usedWrite{}
	}
	write := w.byUID[uid]
	write.used, write.flapping = w.request, known
	w.byUID[uid] = write
}

func (w *lastWrites) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byUID, uid)
}

// Evict implements [resourcestate.Evictor].
func (w *lastWrites) Evict(now time.Time) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, write := range w.byUID {
		if w.request-write.used > maxIdleRequests {
			delete(w.byUID, uid)
			continue
		}
		if write.flapping != nil && write.flapping.previous != nil {
			write.flapping = write.flapping.dropPrevious(now)
			w.byUID[uid] = write
		}
	}
	w.request++
	return len(w.byUID) == 0
}

// refusals are the writes of one object manager that the API server refused as invalid. The same write of the same
// object gets the same answer, so it is not sent again: a resource with a refused child may get many requests because
// of its other children. A root keeps them with the resource. There are none outside of a root.
type refusals struct {
	mu      sync.Mutex
	byWrite map[refusedWrite]refusal
}

// refusedWrite identifies a write by what decides on the answer.
type refusedWrite struct {
	// client is the cluster and the identity.
	client client.Client
	// name is the name of the object, or the prefix of a generated one.
	name types.NamespacedName
	// uid and version are those of the object as it was read. They are empty for a create.
	uid     types.UID
	version string
	// desired is what is desired.
	desired desiredHash
}

type refusal struct {
	err error
	at  time.Time
}

const (
	// refusalLasts is how long a refusal counts. The answer may also depend on an admission policy or a webhook, whose
	// changes are not seen.
	refusalLasts = 10 * time.Minute
	// maxRefusals bounds the refusals where something else is desired in each request.
	maxRefusals = 1024
)

var _ resourcestate.Evictor = (*refusals)(nil)

// answer returns the error with which the write was refused, or nil if it has to be sent.
func (r *refusals) answer(write refusedWrite, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byWrite[write]
	if known.err == nil || now.Sub(known.at) >= refusalLasts {
		return nil
	}
	return known.err
}

func (r *refusals) add(write refusedWrite, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byWrite == nil || len(r.byWrite) >= maxRefusals {
		r.byWrite = map[refusedWrite]refusal{}
	}
	r.byWrite[write] = refusal{err: err, at: now}
}

// Evict implements [resourcestate.Evictor].
func (r *refusals) Evict(now time.Time) (empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for write, known := range r.byWrite {
		if now.Sub(known.at) >= refusalLasts {
			delete(r.byWrite, write)
		}
	}
	return len(r.byWrite) == 0
}

// refusalsKey is the key of the refusals of an object manager in the state of a resource.
type refusalsKey struct{ manager *lastWrites }

// writeOf identifies the write of obj: the object as it was read, or what is to be created.
func (w *objectWriter[Type]) writeOf(obj client.Object, desired desiredHash) refusedWrite {
	write := refusedWrite{
		client:  w.sender,
		name:    client.ObjectKeyFromObject(obj),
		uid:     obj.GetUID(),
		version: obj.GetResourceVersion(),
		desired: desired,
	}
	if write.name.Name == "" {
		write.name.Name = obj.GetGenerateName()
	}
	return write
}

// refused returns the answer to an earlier write that was the same, if it was refused as invalid.
func (w *objectWriter[Type]) refused(ctx context.Context, write refusedWrite) error {
	if w.kept == nil || !write.desired.known {
		return nil
	}
	known, ok := resourcestate.Load[*refusals](w.kept, refusalsKey{w.manager})
	if !ok {
		return nil
	}
	return known.answer(write, rtime.RetrieveNow(ctx))
}

// noteRefusal remembers that a write was refused with err, if it was refused as invalid.
func (w *objectWriter[Type]) noteRefusal(ctx context.Context, write refusedWrite, err error) {
	if w.kept == nil || !write.desired.known || !apierrs.IsInvalid(err) {
		return
	}
	known := resourcestate.LoadOrStore(w.kept, refusalsKey{w.manager}, func() *refusals { return &refusals{} })
	known.add(write, err, rtime.RetrieveNow(ctx))
}
