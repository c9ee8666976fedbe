package replay

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rtime "github.com/espalier-dev/espalier/time"
)

// maxCalls is how many calls one request may make. A loop that ignores its context would never end otherwise: a dead
// client always returns an error.
const maxCalls = 10_000

var (
	errEndless = fmt.Errorf("the request makes more than %d calls", maxCalls)
	errExited  = errors.New("the request ended its goroutine")
)

// instance is one process of the code. Its fields but the last belong to the lock of the run.
type instance struct {
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool

	request Instance
}

func newInstance(ctx context.Context) *instance {
	in := &instance{}
	in.ctx, in.cancel = context.WithCancel(ctx)
	return in
}

// die ends the instance.
func (in *instance) die() {
	in.dead = true
	in.cancel()
}

// request is one request of a run, or the attempt to start an instance.
type request struct {
	// step is what others did just before; empty if nothing.
	step  string
	calls []*call
	// attempts are calls, and what an instance tried after its death.
	attempts int

	result reconcile.Result
	err    error
	// died is set if the instance ended.
	died bool
	// moved is set if something changed, or a cache has seen something new.
	moved bool
}

// make starts the instance if that was not done yet, and makes a request. The error is that of the start.
func (in *instance) make(r *run, q *request) error {
	var failed error
	q.err = guarded(func() (err error) {
		ctx := rtime.StashNow(in.ctx, r.time())
		if in.request == nil {
			if in.request, failed = r.program.Start(ctx, &World{run: r, instance: in}); failed != nil {
				failed = fmt.Errorf("start the code: %w", failed)
				return failed
			}
		}
		q.result, err = in.request(ctx)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.endless() {
		q.err = errEndless
	}
	return failed
}

// guarded calls a function, which may panic or end its goroutine.
func guarded(call func() error) (err error) {
	done := make(chan struct{})
	err = errExited
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		err = call()
	}()
	<-done
	return err
}

// endless reports whether the request would never return.
func (q *request) endless() bool { return q.attempts > maxCalls }

// outcome is how the request ended.
func (q *request) outcome() Outcome {
	return Outcome{Result: q.result, Err: q.err, Moved: q.moved || q.died}
}
