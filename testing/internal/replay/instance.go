package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rtime "github.com/espalier-dev/espalier/time"
)

// maxCalls is how many calls one request may make. A loop that ignores its context would never end otherwise: a dead
// client always returns an error.
const maxCalls = 10_000

// grace is how long code may take to return once the context of the exploration is done.
const grace = time.Second

var (
	errEndless = errors.New("it does not return")
	errExited  = errors.New("the code ended its goroutine, as FailNow of a test does")
	errStuck   = errors.New("the code does not return")
)

// instance is one process of the code. Its fields but the last belong to the lock of the run.
type instance struct {
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	// attempts are the calls since the last request began, and what was tried after the death.
	attempts int
	// givenUp is set if a request took too long. It makes no call any more, and is not waited for.
	givenUp bool
	// externalCalls are those that go on. A dead instance begins none.
	externalCalls sync.WaitGroup

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

// wait waits until a dead instance does nothing outside of the clusters any more, or until the context is done.
func (in *instance) wait(ctx context.Context) {
	if in.givenUp {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		in.externalCalls.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// endless reports whether the request would never return.
func (in *instance) endless() bool { return in.attempts > maxCalls || in.givenUp }

// request is one request of a run, or the attempt to start an instance.
type request struct {
	// step is what others did just before; empty if nothing.
	step  string
	calls []*call

	result reconcile.Result
	err    error
	// died is set if the instance ended.
	died bool
	// moved is set if something changed, or a cache has seen something new.
	moved bool
}

// make starts the instance if that was not done yet, and makes a request. The error says that it did not start, or is
// errStuck.
func (in *instance) make(ctx context.Context, r *run, q *request) error {
	r.mu.Lock()
	in.attempts = 0
	r.mu.Unlock()
	now := rtime.StashNow(in.ctx, r.time())
	if in.request == nil {
		var err error
		in.request, err = guarded(ctx, r.patience(), func() (Instance, error) {
			return r.program.Start(now, &World{run: r, instance: in})
		})
		if err != nil {
			in.request, q.err = nil, fmt.Errorf("start the code: %w", r.unlessEndless(in, q, err))
			return q.err
		}
	}
	var err error
	q.result, err = guarded(ctx, r.patience(), func() (reconcile.Result, error) { return in.request(now) })
	if q.err = r.unlessEndless(in, q, err); errors.Is(err, errStuck) {
		return err
	}
	return nil
}

// patience is how long one request may take. Where the code has the time of a bubble, waiting takes no time.
func (r *run) patience() time.Duration {
	if r.program.Patience == 0 && r.program.Within != nil {
		return 24 * time.Hour
	}
	return cmp.Or(r.program.Patience, 2*time.Minute)
}

// unlessEndless returns an error, or that the request of an instance is endless and what it does.
func (r *run) unlessEndless(in *instance, q *request, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.givenUp = in.givenUp || errors.Is(err, errEndless)
	if !in.endless() {
		return err
	}
	after := fmt.Sprintf("more than %d calls", maxCalls)
	if in.givenUp {
		after = fmt.Sprintf("%s and %d calls", r.patience(), in.attempts)
	}
	if len(q.calls) == 0 {
		return fmt.Errorf("%w: after %s", errEndless, after)
	}
	last := q.calls[len(q.calls)-1]
	if last.err == nil {
		return fmt.Errorf("%w: after %s, the last is %q", errEndless, after, last.name)
	}
	return fmt.Errorf("%w: after %s, the last is %q: %w", errEndless, after, last.name, last.err)
}

// guarded calls a function, which may panic or end its goroutine. If it does not return soon after the context is done,
// it is left alone, and the error is errStuck. If it takes too long, it is left alone too, and the error is errEndless.
func guarded[T any](ctx context.Context, patience time.Duration, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errExited}
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("panic: %v", p)
			}
			answers <- a
		}()
		a.value, a.err = call()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-timer.C:
		return *new(T), errEndless
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-time.After(grace):
		return *new(T), fmt.Errorf("%w: %w", errStuck, context.Cause(ctx))
	}
}

// outcome is how the request ended.
func (q *request) outcome() Outcome {
	return Outcome{Result: q.result, Err: q.err, Moved: q.moved || q.died}
}
