package reconcilers

import (
	"context"
	"hash/maphash"
	"reflect"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestState is the state of one request of a root: what its nodes share, and which errors came up where. It is nil
// for a node that runs without a root. The methods of a nil requestState do nothing.
type requestState struct {
	// resource is what the root keeps of the resource from request to request; nil before the resource was read.
	resource *resourcestate.State
	// stored is the resource as the API server has it, as far as is known. It may share memory with the cache.
	stored client.Object
	// written is true once stored is the answer to a write of this request.
	written bool
	// skipFinalizerEvents is the field of the root.
	skipFinalizerEvents bool

	// lists are those of the children.
	lists listing.Lists

	mu       sync.Mutex
	failures []failure
	// reads is the digest of the versions of the objects that were read and are tracked.
	reads uint64
	// retry is true if what was refused is to be tried again, although no node returned an error.
	retry bool
	// wake is after how long the resource is to be reconciled again, although no node returned a delay; 0 for never.
	wake time.Duration
	// ownerRef refers to owner, the resource whose children were made last.
	owner    ownerIdentity
	ownerRef metav1.OwnerReference
}

// failure is an error at the node that met it first.
type failure struct {
	err    error
	path   string
	object string
	class  Class
}

// recordFailure records that err came up at the node of ctx while the node worked on object.
func recordFailure(ctx context.Context, object string, err error) {
	if err == nil {
		return
	}
	if s := contextOf(ctx).state; s != nil {
		s.fail(pathOf(ctx), object, Classify(err), err)
	}
}

// recordUnlocated is recordFailure for a node that runs others. It records err only if no node below did, because nodes
// of other packages may not record their errors.
func recordUnlocated(ctx context.Context, err error) {
	if err == nil {
		return
	}
	s := contextOf(ctx).state
	if s == nil {
		return
	}
	s.mu.Lock()
	_, located := s.locate(err)
	s.mu.Unlock()
	if !located {
		recordFailure(ctx, "", err)
	}
}

// fail records that err came up at a node while the node worked on object. The first record of an error counts, because
// the deepest node knows most.
func (s *requestState) fail(at *nodePath, object string, class Class, err error) {
	if s == nil || err == nil || !isComparable(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.failures {
		if f.err == err {
			return
		}
	}
	s.failures = append(s.failures, failure{err: err, path: at.String(), object: object, class: class})
}

// locate finds where err came up, or the first of the errors that it wraps or joins.
func (s *requestState) locate(err error) (failure, bool) {
	if s == nil || err == nil {
		return failure{}, false
	}
	if isComparable(err) {
		for _, f := range s.failures {
			if f.err == err {
				return f, true
			}
		}
	}
	for _, member := range wrappedErrors(err) {
		if f, ok := s.locate(member); ok {
			return f, true
		}
	}
	return failure{}, false
}

// isComparable reports whether == works for v. It panics for a value that holds a slice, a map or a function. Some
// errors and some clients do, such as the clients of controller-runtime's interceptor.
func isComparable(v any) bool {
	return reflect.ValueOf(v).Comparable()
}

// readSeed is the seed of the digests of reads.
var readSeed = maphash.MakeSeed()

// noteRead notes the version of an object that was read and is tracked: what is desired may be made of it.
func (s *requestState) noteRead(obj client.Object) {
	if s == nil {
		return
	}
	version := maphash.Comparable(readSeed, [2]string{string(obj.GetUID()), obj.GetResourceVersion()})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads += version
}

// inputsBeside returns the digest of what an object with that UID may be made of beside the resource: the versions of
// the objects that were read and are tracked, and the status of the other children. What the controller writes does not
// change a status, so two objects that are flapping are no reason for each other.
func (s *requestState) inputsBeside(uid types.UID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads + s.lists.Inputs(uid)
}

// wantRetry notes that what was refused is to be tried again, with back-off.
func (s *requestState) wantRetry() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = true
}

// wakeAfter notes that the resource is to be reconciled again after delay.
func (s *requestState) wakeAfter(delay time.Duration) {
	if s == nil || delay <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == 0 || delay < s.wake {
		s.wake = delay
	}
}

// retriedByDelay is up to which delay of a result no back-off is needed: the request after the delay is the retry.
const retriedByDelay = time.Minute

// reschedule adds to result what the nodes have noted. A longer delay gives way to a retry, because controller-runtime
// does not back off where there is a delay.
func (s *requestState) reschedule(result Result, skipRetry bool) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake > 0 {
		result = aggregateResult(result, Result{RequeueAfter: s.wake})
	}
	if !s.retry || skipRetry || result.RequeueAfter > 0 && result.RequeueAfter <= retriedByDelay {
		return result
	}
	result.RequeueAfter = 0
	return withRequeue(result, true)
}

// finalizersPatched records a patch of the finalizers of the resource. Patched is the answer.
func (s *requestState) finalizersPatched(patched client.Object) {
	if s == nil || s.stored == nil || s.stored.GetUID() != patched.GetUID() {
		return
	}
	s.stored.SetFinalizers(patched.GetFinalizers())
	s.stored.SetResourceVersion(patched.GetResourceVersion())
	s.stored.SetGeneration(patched.GetGeneration())
	s.written = true
}

// statusWritten records a write of the status of the resource. Written is the answer.
func (s *requestState) statusWritten(written client.Object) {
	if s != nil {
		s.stored, s.written = written, true
	}
}

// stateOf returns what the root keeps of the resource of the request, or nil outside of a root.
func stateOf(ctx context.Context) *resourcestate.State {
	if s := contextOf(ctx).state; s != nil {
		return s.resource
	}
	return nil
}
