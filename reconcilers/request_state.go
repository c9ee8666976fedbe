package reconcilers

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestState is the state of one request of a root: what its nodes share, and which errors came up where. It is nil
// where no node was entered. The methods of a nil requestState do nothing.
type requestState struct {
	// resource is what is kept of the resource from request to request; nil before the resource was read.
	resource *resourcestate.State
	// lastsForCall is true if nothing keeps resource for the next request.
	lastsForCall bool
	// rootless is true if no root runs the nodes. Panics of nested nodes then reach the caller.
	rootless bool
	// stored is the resource as the API server has it, as far as is known. It may share memory with the cache.
	stored client.Object
	// written is true once stored is the answer to a write of this request.
	written bool
	// causes are why the request runs; nil unless observers listen.
	causes []Cause
	// observers are told what the nodes do; nil for none.
	observers *observerList
	// resourceSeen is the resource that observers are told of at the end of the request; nil for none.
	resourceSeen client.Object
	// skipFinalizerEvents is the field of the root.
	skipFinalizerEvents bool
	// takeOverFrom is the field of the root.
	takeOverFrom []string
	// leavePanics is true if a panic of a node has to reach the caller of the root.
	leavePanics bool

	// described are the types of the conditions that the nodes of the tree set.
	described []string
	// conditions are those that were set in the request.
	conditions conditionlog.Log

	// lists are those of the children.
	lists listing.Lists

	mu       sync.Mutex
	failures []failure
	// asked has the lists of children that the API server was asked for, past a cache that does not have all.
	asked map[listing.ListKey]bool
	// panic is the text of the first panic. It is empty if no node panicked.
	panic string
	// hanging says which child is being deleted although it is desired, and does not go. It is empty for none.
	hanging string
	// retry is true if what was refused is to be tried again, although no node returned an error.
	retry bool
	// wake is after how long the resource is to be reconciled again, although no node returned a delay; 0 for never.
	wake time.Duration
	// ownerRef refers to owner, the resource whose children were made last.
	owner    ownerIdentity
	ownerRef metav1.OwnerReference
}

// noteAsked notes that the API server was asked for a list of children.
func (s *requestState) noteAsked(list listing.ListKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[listing.ListKey]bool{}
	}
	s.asked[list] = true
}

// wasAsked reports whether the API server was asked for a list of children.
func (s *requestState) wasAsked(list listing.ListKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[list]
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

// hangs notes that a child does not go. The first one counts.
func (s *requestState) hangs(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging = cmp.Or(s.hanging, text)
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

// withState returns a context that has the state of a request. A node that no root runs gets one that lasts for its
// call, or the one that a test harness brings.
func withState(ctx context.Context) context.Context {
	if contextOf(ctx).state != nil {
		return ctx
	}
	p := &requestState{resource: resourcestate.FromContext(ctx), rootless: true}
	if p.resource == nil {
		p.resource, p.lastsForCall = &resourcestate.State{}, true
	}
	return derive(ctx, func(s *treeContext) { s.state = p })
}

// stateOf returns what is kept of the resource of the request, or of the item of ctx. It is empty where no node was
// entered, and before the root has read the resource.
func stateOf(ctx context.Context) *resourcestate.State {
	s := contextOf(ctx)
	switch {
	case s.item != nil:
		return s.item.state
	case s.state == nil || s.state.resource == nil:
		return &resourcestate.State{}
	}
	if s.state.lastsForCall && s.state.rootless {
		sayForgetful(ctx)
	}
	return s.state.resource
}

// isForgetful reports whether nothing is kept of the resource of ctx for the next request.
func isForgetful(ctx context.Context) bool {
	state := contextOf(ctx).state
	return state == nil || state.lastsForCall
}

// saidForgetful are the paths of nodes of which it was logged.
var saidForgetful sync.Map

// sayForgetful logs once that a node needs to know what it did before, and cannot.
func sayForgetful(ctx context.Context) {
	path := RetrievePath(ctx)
	if _, said := saidForgetful.LoadOrStore(path, true); !said {
		logr.FromContextOrDiscard(ctx).Info("a node forgets each request, since no root runs it: run it by Embed",
			"node", path)
	}
}

// memoryKey is the key of a memory of a node in the state of a resource.
type memoryKey[Value any] struct{ node any }

// memoryOf returns what a node remembers of its children.
func memoryOf[Value any](ctx context.Context, node any) *resourcestate.Memory[Value] {
	return resourcestate.LoadOrNew[resourcestate.Memory[Value]](stateOf(ctx), memoryKey[Value]{node})
}
