package component

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// requeueAfter decides when the component is looked at again, if nothing wakes it before. Requests of other resources
// go first.
func (j *job[T]) requeueAfter(c condition) reconcilers.Result {
	delay := j.delay(c)
	if j.facts.varies != "" && delay > 0 {
		delay = min(delay, max(j.state.variation.nextOutput(j.now).Sub(j.now), time.Second))
	}
	if delay <= 0 {
		return reconcilers.Result{}
	}
	priority := handler.LowPriority
	return reconcilers.Result{RequeueAfter: jittered(delay, string(j.resource.GetUID())), Priority: &priority}
}

func (j *job[T]) delay(c condition) time.Duration {
	s := j.facts
	switch {
	case s.suspended, s.withdrawn && !s.retriable:
		return 0
	case s.retriable:
		j.state.resetWaits("")
		if j.retryAfter != nil && *j.retryAfter > 0 {
			return *j.retryAfter
		}
		return j.configuration.Retry
	case s.abandoning != "":
		return time.Millisecond
	case s.done && (len(j.report.Failures) > 0 || j.report.Waits):
		// Auxiliary objects could not be written, or nothing shows when they are as desired.
		longest := max(j.configuration.Requeue, time.Second)
		return j.untilDue(min(backoffDelay(j.state.countWait(reasonAuxiliary, j.report.Changed()), longest), longest))
	case s.done:
		j.state.resetWaits("")
		if len(j.report.Polled) > 0 {
			return j.untilDue(min(pollInterval, j.configuration.Requeue))
		}
		return j.untilDue(j.configuration.Requeue)
	case s.recorded:
		return time.Millisecond
	}
	backoff := backoffDelay(j.state.countWait(c.reason, j.report.Changed()), pollInterval)
	polls := j.deployment.unwatched || j.report.Waits || len(j.report.Polled) > 0
	switch {
	case s.blocked && !polls && !j.report.RetryAt.IsZero():
		return j.untilDue(max(j.report.RetryAt.Sub(j.now), time.Second))
	case s.blocked:
		// No watch shows the objects of others go.
		return backoff + time.Second
	case polls:
		return backoff
	case s.leaving() || j.status.ProcessingSince == nil:
		return j.configuration.Requeue
	}
	// The timeout is noticed when it is due.
	if left := j.status.ProcessingSince.Add(j.configuration.Timeout).Sub(j.now); left > 0 {
		return j.untilDue(min(left, j.configuration.Requeue))
	}
	return j.untilDue(j.configuration.Requeue)
}

// reasonAuxiliary stands for waiting for what the component does without.
const reasonAuxiliary = "auxiliary"

// untilDue shortens a delay to when an object is to be rewritten, or a contested one to be looked at.
func (j *job[T]) untilDue(delay time.Duration) time.Duration {
	for _, due := range []time.Time{j.report.Plan.Reapply, j.report.Plan.Recheck} {
		if !due.IsZero() {
			delay = min(delay, max(due.Sub(j.now), time.Second))
		}
	}
	return delay
}

// pollInterval is how often a component with objects that no watch shows is looked at.
const pollInterval = 10 * time.Second

// backoffDelay is how long to wait where no event ends the wait, after so many requests that found nothing new: 50 to
// 800 ms, then 1 s, then 2 s, then longest.
func backoffDelay(tries int, longest time.Duration) time.Duration {
	switch {
	case tries < 5:
		return 50 * time.Millisecond << max(tries, 0)
	case tries < 20:
		return time.Second
	case tries < 50:
		return 2 * time.Second
	}
	return longest
}

// jittered adds 1 to 5 percent to a delay. Components that started together are then not reconciled together. The same
// seed gives the same delay.
func jittered(delay time.Duration, seed string) time.Duration {
	if delay <= 0 {
		return delay
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(seed)) // never fails
	return delay + delay*time.Duration(1+sum.Sum32()%5)/100
}

// countWait counts a request that has to wait, and returns how many there were before without anything new.
func (s *resourceState) countWait(reason string, changed bool) int {
	if s.reason != reason || changed {
		s.resetWaits(reason)
		return 0
	}
	s.tries++
	return s.tries
}

// resetWaits starts the count anew.
func (s *resourceState) resetWaits(reason string) {
	s.reason, s.tries = reason, 0
}

// eventSource brings a resource back when one of its objects changes. It is a source of the controller. Events that
// come before the controller starts it are delivered then.
type eventSource struct {
	mu    sync.Mutex
	queue requestQueue
	early map[reconcilers.Request]bool
	// delays coalesce the events of large components, whose requests cost much.
	delays map[types.NamespacedName]time.Duration
	// stops are called when the controller stops.
	stops []func()
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcilers.Request]

var _ source.Source = (*eventSource)(nil)

// Start is called by the controller. A source that several controllers start (one node in several trees) serves the
// last.
func (s *eventSource) Start(ctx context.Context, queue requestQueue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	for request := range s.early {
		queue.Add(request)
	}
	s.early = nil
	context.AfterFunc(ctx, s.stop)
	return nil
}

// running reports whether a controller runs that can be woken.
func (s *eventSource) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue != nil
}

// onStop has f called when the controller stops.
func (s *eventSource) onStop(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, f)
}

func (s *eventSource) stop() {
	s.mu.Lock()
	stops := s.stops
	s.stops, s.queue = nil, nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// setCoalesceDelay notes how many objects a resource has. A resource with many is woken after a delay, once for many
// events.
func (s *eventSource) setCoalesceDelay(name types.NamespacedName, objects int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delay := min(time.Duration(objects)*coalescePerObject, maxCoalesceDelay)
	if delay < minCoalesceDelay {
		delete(s.delays, name)
		return
	}
	if s.delays == nil {
		s.delays = map[types.NamespacedName]time.Duration{}
	}
	s.delays[name] = delay
}

const (
	coalescePerObject = 25 * time.Microsecond
	minCoalesceDelay  = 10 * time.Millisecond
	maxCoalesceDelay  = time.Second
)

// wake adds a request of the resource to the queue, with low priority if low is true.
func (s *eventSource) wake(name types.NamespacedName, low bool) {
	s.mu.Lock()
	queue, delay := s.queue, s.delays[name]
	request := reconcilers.Request{NamespacedName: name}
	if queue == nil {
		if s.early == nil {
			s.early = map[reconcilers.Request]bool{}
		}
		s.early[request] = true
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if ordered, ok := queue.(priorityqueue.PriorityQueue[reconcilers.Request]); ok {
		options := priorityqueue.AddOpts{After: delay}
		if low {
			priority := handler.LowPriority
			options.Priority = &priority
		}
		ordered.AddWithOpts(options, request)
		return
	}
	queue.AddAfter(request, delay)
}
