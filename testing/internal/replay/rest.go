package replay

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// polls is how many requests in a row that change nothing and ask for the same delay are taken for rest.
const polls = 3

// Outcome is how a request ended.
type Outcome struct {
	Result reconcile.Result
	// Err is the error of the reconciler. That of a part of it, such as a node, is turned into that of its root first.
	Err error
	// Moved is set if something changed, if a cache has seen something new, or if the instance died: another request
	// follows at once, whatever the result and the error say.
	Moved bool
}

// Rest tells after each request of a run whether the run is at rest. The zero value is for the first request.
type Rest struct {
	// polled is how many requests in a row changed nothing and asked for the delay.
	polled int
	delay  time.Duration
}

// After takes the outcome of the next request. It reports whether the run is at rest; if not, the next request is made
// after a delay, which is zero for at once.
//
// As in the queue of a controller, an error comes before RequeueAfter and RequeueAfter before Requeue, and a terminal
// error is not retried. A delay after a request that moved does not pass, since an event of a watch comes first. Three
// requests in a row that move nothing and ask for the same delay are rest.
func (r *Rest) After(o Outcome) (rest bool, delay time.Duration) {
	again, delay := o.next()
	if again && delay == 0 {
		*r = Rest{}
		return false, 0
	}
	if r.polled == 0 || r.delay != delay {
		*r = Rest{delay: delay}
	}
	r.polled++
	return !again || r.polled >= polls, delay
}

// next reports whether the outcome asks for another request, and after how long.
func (o Outcome) next() (again bool, delay time.Duration) {
	switch {
	case o.Moved:
		return true, 0
	case o.Err != nil:
		return !errors.Is(o.Err, reconcile.TerminalError(nil)), 0
	case o.Result.RequeueAfter > 0:
		return true, o.Result.RequeueAfter
	}
	//lint:ignore SA1019 Code under test may still set it.
	return o.Result.Requeue, 0
}
