package components

import (
	"hash/fnv"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// requeueAfter decides when the component is looked at again, if nothing wakes it before. Requests of other resources
// go first.
func (j *job[T]) requeueAfter(c condition) reconcilers.Result {
	delay := j.delay(c)
	if delay <= 0 {
		return reconcilers.Result{}
	}
	priority := handler.LowPriority
	return reconcilers.Result{RequeueAfter: jittered(delay, string(j.resource.GetUID())), Priority: &priority}
}

func (j *job[T]) delay(c condition) time.Duration {
	s := j.facts
	switch {
	case s.suspended:
		return 0
	case s.retriable:
		j.state.resetWaits("")
		if j.retryAfter != nil && *j.retryAfter > 0 {
			return *j.retryAfter
		}
		return j.configuration.Retry
	case s.done:
		j.state.resetWaits("")
		if len(j.report.Polled) > 0 {
			return j.untilReapply(min(pollInterval, j.configuration.Requeue))
		}
		return j.untilReapply(j.configuration.Requeue)
	case s.recorded:
		return time.Millisecond
	}
	backoff := backoffDelay(j.state.countWait(c.reason, j.report.Changed()), pollInterval)
	switch {
	case s.blocked:
		// No watch shows the objects of others go.
		return backoff + time.Second
	case j.deployment.unwatched || j.report.Waits || len(j.report.Polled) > 0:
		return backoff
	case s.deleting || j.status.ProcessingSince == nil:
		return j.configuration.Requeue
	}
	// The timeout is noticed when it is due.
	if left := j.status.ProcessingSince.Add(j.configuration.Timeout).Sub(j.now); left > 0 {
		return j.untilReapply(min(left, j.configuration.Requeue))
	}
	return j.untilReapply(j.configuration.Requeue)
}

// untilReapply shortens a delay to when an object is to be rewritten.
func (j *job[T]) untilReapply(delay time.Duration) time.Duration {
	if due := j.report.Plan.Reapply; !due.IsZero() {
		return min(delay, max(due.Sub(j.now), time.Second))
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

// jittered adds 1 to 5 percent to a delay, so that components that started together do not come back together. The same
// seed gives the same delay.
func jittered(delay time.Duration, seed string) time.Duration {
	if delay <= 0 {
		return delay
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(seed)) // never fails
	return delay + delay*time.Duration(1+sum.Sum32()%5)/100
}
