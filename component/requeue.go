package component

import (
	"hash/fnv"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// comeBack says when a component is looked at again, if nothing wakes it before.
type comeBack struct {
	when string
	// counted is true if delay depends on how many requests in a row waited for the same and found nothing new.
	counted bool
	// delay returns how long to wait; zero if only an event or the error of the request brings the component back.
	delay func(*pace) time.Duration
}

// pace is what a delay depends on.
type pace struct {
	now                      time.Time
	retry, interval, timeout time.Duration
	// retryAfter is the delay that an error asks for; nil for retry.
	retryAfter *time.Duration
	// tries counts the requests before this one that waited for the same.
	tries int
	// since is when the roll-out began, fenceAt when a fence is tried again or its margin is over; zero if there is
	// none.
	since, fenceAt time.Time
	// due is when an object is to be rewritten, when one is to be looked at, when the status is to be written, and when
	// a deletion that does not go on offers to give up; zero for never.
	due [4]time.Time
}

var (
	never   = &comeBack{when: "never", delay: func(*pace) time.Duration { return 0 }}
	byError = &comeBack{when: "by the error", delay: never.delay}
	// Other requests go first, and the status is written before.
	atOnce     = &comeBack{when: "at once", delay: func(*pace) time.Duration { return time.Millisecond }}
	afterRetry = &comeBack{when: "after the retry interval", delay: func(p *pace) time.Duration {
		if p.retryAfter != nil && *p.retryAfter > 0 {
			return *p.retryAfter
		}
		return p.retry
	}}
	nextInterval = &comeBack{when: "after the interval", delay: func(p *pace) time.Duration {
		return p.untilDue(p.interval)
	}}
	nextPoll = &comeBack{when: "after the poll interval", delay: func(p *pace) time.Duration {
		return p.untilDue(min(pollInterval, p.interval))
	}}
	backOffToInterval = &comeBack{"with back-off, at last after the interval", true, func(p *pace) time.Duration {
		longest := max(p.interval, time.Second)
		return p.untilDue(min(backoffDelay(p.tries, longest), longest))
	}}
	backOff = &comeBack{"with back-off, at last after the poll interval", true, func(p *pace) time.Duration {
		return backoffDelay(p.tries, pollInterval)
	}}
	// No watch shows the objects of others go.
	backOffBlocked = &comeBack{"with back-off, a second later", true, func(p *pace) time.Duration {
		return backoffDelay(p.tries, pollInterval) + time.Second
	}}
	whenFenced = &comeBack{"when a fence is tried again or its margin is over", true, func(p *pace) time.Duration {
		return p.untilDue(p.until(p.fenceAt))
	}}
	whenOverdue = &comeBack{"when the timeout is over, then after the interval", true, func(p *pace) time.Duration {
		if left := p.since.Add(p.timeout).Sub(p.now); !p.since.IsZero() && left > 0 {
			return p.untilDue(min(left, p.interval))
		}
		return p.untilDue(p.interval)
	}}
)

// until returns how long it takes until t, but at least a second.
func (p *pace) until(t time.Time) time.Duration { return max(t.Sub(p.now), time.Second) }

// untilDue shortens a delay to when an object is due.
func (p *pace) untilDue(delay time.Duration) time.Duration {
	for _, due := range p.due {
		if !due.IsZero() {
			delay = min(delay, p.until(due))
		}
	}
	return delay
}

// requeueAfter returns when the component is looked at again. reason is what the condition says. Requests of other
// resources go first.
func (r *request[T]) requeueAfter(back *comeBack, reason string) reconcilers.Result {
	p := pace{
		now:        r.now,
		retry:      r.configuration.Retry,
		interval:   r.configuration.Requeue,
		timeout:    r.configuration.Timeout,
		retryAfter: r.retryAfter,
		fenceAt:    r.facts.fenceAt,
	}
	if since := r.status.ProcessingSince; since != nil {
		p.since = since.Time
	}
	if r.report != nil {
		p.due = [4]time.Time{r.report.Plan.Reapply, r.report.Plan.Recheck, r.facts.heldUntil, r.facts.stalledAt}
	}
	if back.counted {
		p.tries = r.state.countWait(reason, r.report.Changed())
	} else {
		r.state.resetWaits("")
	}
	delay := back.delay(&p)
	if r.facts.varies != "" && delay > 0 {
		delay = min(delay, p.until(r.state.variation.nextOutput(r.now)))
	}
	if delay <= 0 {
		return reconcilers.Result{}
	}
	priority := handler.LowPriority
	return reconcilers.Result{RequeueAfter: jittered(delay, string(r.resource.GetUID())), Priority: &priority}
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
