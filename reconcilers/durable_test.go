package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// marked is an error of another package that says of itself what it is, and may wrap another that does not know.
type marked struct {
	as      error
	wrapped error
	// secret makes the type one that cannot be compared.
	secret []byte
}

func (m marked) Error() string        { return "marked" }
func (m marked) Is(target error) bool { return errors.Is(m.as, target) }
func (m marked) Unwrap() error        { return m.wrapped }

func TestDurable(t *testing.T) {
	quiet, halt, durable := reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers, reconcilers.ErrDurable
	wrapped := func(err error) error { return fmt.Errorf("wrapped: %w", err) }
	for name, test := range map[string]struct {
		err      error
		durable  bool
		onlyHalt bool
	}{
		"none":                           {},
		"plain":                          {err: errBoom},
		"quiet":                          {err: quiet},
		"quiet, wrapped":                 {err: wrapped(quiet)},
		"halt":                           {err: halt, onlyHalt: true},
		"halt, wrapped":                  {err: wrapped(halt), onlyHalt: true},
		"halt, twice":                    {err: errors.Join(halt, wrapped(halt)), onlyHalt: true},
		"halt and plain":                 {err: errors.Join(halt, errBoom)},
		"halt and quiet":                 {err: errors.Join(halt, quiet)},
		"halt until an event":            {err: reconcilers.ErrHaltUntilEvent, onlyHalt: true},
		"durable and until an event":     {err: errors.Join(durable, reconcilers.ErrHaltUntilEvent), durable: true},
		"durable":                        {err: durable, durable: true},
		"durable, wrapped":               {err: wrapped(wrapped(durable)), durable: true},
		"durable, located":               {err: &reconcilers.Error{Err: durable}, durable: true},
		"durable and plain":              {err: errors.Join(errBoom, durable), durable: true},
		"durable and plain, by verbs":    {err: fmt.Errorf("%w: %w", errBoom, durable), durable: true},
		"durable and plain, aggregate":   {err: utilerrors.NewAggregate([]error{durable, errBoom}), durable: true},
		"durable and plain, far apart":   {err: errors.Join(wrapped(errBoom), wrapped(errors.Join(errBoom, wrapped(durable)))), durable: true},
		"durable, twice":                 {err: errors.Join(durable, errors.Join(errBoom, durable)), durable: true},
		"durable and quiet":              {err: errors.Join(quiet, durable)},
		"durable and quiet, by verbs":    {err: fmt.Errorf("%w: %w", durable, wrapped(quiet))},
		"durable and quiet, aggregate":   {err: utilerrors.NewAggregate([]error{errBoom, durable, quiet})},
		"durable and halt":               {err: errors.Join(durable, halt)},
		"durable and quiet, deep":        {err: wrapped(errors.Join(errBoom, errors.Join(durable, wrapped(errors.Join(errBoom, quiet)))))},
		"the members of durable, joined": {err: errors.Join(quiet, halt)},
		"marked durable":                 {err: marked{as: durable}, durable: true},
		"marked durable, wraps plain":    {err: marked{as: durable, wrapped: errBoom}, durable: true},
		"marked quiet beside durable":    {err: errors.Join(marked{as: quiet, wrapped: errBoom}, durable)},
		"marked quiet":                   {err: marked{as: quiet}},
		"not comparable":                 {err: errors.Join(marked{as: errBoom, secret: []byte("x")}, durable), durable: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reconcilers.IsDurable(test.err); got != test.durable {
				t.Errorf("durable is %v of %v, want %v", got, test.err, test.durable)
			}
			if got := reconcilers.IsOnlyHalt(test.err); got != test.onlyHalt {
				t.Errorf("only a halt is %v of %v, want %v", got, test.err, test.onlyHalt)
			}
		})
	}
}

// A halt until an event is no error, and asks for no retry. What it is joined with may.
func TestHaltUntilEvent(t *testing.T) {
	until, later := reconcilers.ErrHaltUntilEvent, reconcilers.Result{RequeueAfter: time.Hour}
	//lint:ignore SA1019 deprecated, not gone
	retry := reconcilers.Result{Requeue: true}
	for name, test := range map[string]struct {
		result reconcilers.Result
		err    error
		want   reconcilers.Result
	}{
		"alone":                 {err: until},
		"wrapped":               {err: fmt.Errorf("wrapped: %w", until)},
		"twice":                 {err: errors.Join(until, until)},
		"with a delay":          {result: later, err: until, want: later},
		"with a requeue":        {result: retry, err: until, want: retry},
		"and a halt":            {err: errors.Join(until, reconcilers.ErrHaltSubReconcilers), want: retry},
		"and a quiet error":     {err: errors.Join(reconcilers.ErrQuiet, until), want: retry},
		"and a failure":         {err: errors.Join(until, errBoom), want: retry},
		"and a durable failure": {err: errors.Join(until, errBoom, reconcilers.ErrDurable)},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			root := &widgetRoot{
				Reconciler: widgetSequence{
					&widgetSync{SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
						return test.result, test.err
					}},
					&widgetSync{Sync: func(context.Context, *resources.Widget) error { ran = true; return nil }},
				},
				Config: expectWidget(steadyWidget).Config(),
			}
			result, err := root.Reconcile(t.Context(), widgetRequest)
			if result != test.want || err != nil || ran {
				t.Errorf("the result is %+v with the error %v, and it is %t that the next node ran; want %+v alone",
					result, err, ran, test.want)
			}
		})
	}
}

// madeUp is a random error, with what it is made of.
type madeUp struct {
	err                   error
	plain, quiet, durable int
	halts                 int
}

func makeUp(random *rand.Rand, depth int) madeUp {
	if depth == 0 {
		switch random.Intn(5) {
		case 0:
			return madeUp{err: reconcilers.ErrQuiet, quiet: 1}
		case 1:
			return madeUp{err: reconcilers.ErrHaltSubReconcilers, halts: 1}
		case 2, 3:
			return madeUp{err: reconcilers.ErrDurable, durable: 1}
		default:
			return madeUp{err: errBoom, plain: 1}
		}
	}
	first := makeUp(random, random.Intn(depth))
	switch random.Intn(3) {
	case 0:
		first.err = fmt.Errorf("wrapped: %w", first.err)
		return first
	case 1:
		first.err = &reconcilers.Error{Err: first.err}
		return first
	}
	second := makeUp(random, random.Intn(depth))
	both := madeUp{
		plain:   first.plain + second.plain,
		quiet:   first.quiet + second.quiet,
		halts:   first.halts + second.halts,
		durable: first.durable + second.durable,
	}
	switch random.Intn(3) {
	case 0:
		both.err = errors.Join(first.err, second.err)
	case 1:
		both.err = fmt.Errorf("%w beside %w", first.err, second.err)
	default:
		both.err = utilerrors.NewAggregate([]error{first.err, second.err})
	}
	return both
}

// However errors are wrapped and joined: one is durable if a member is, and none wants another attempt.
func TestDurableInRandomJoins(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	counts := map[bool]int{}
	for range 20_000 {
		e := makeUp(random, 5)
		durable := e.durable > 0 && e.quiet == 0 && e.halts == 0
		if got := reconcilers.IsDurable(e.err); got != durable {
			t.Fatalf("durable is %v of %+v, want %v", got, e, durable)
		}
		onlyHalt := e.halts > 0 && e.plain == 0 && e.quiet == 0 && e.durable == 0
		if got := reconcilers.IsOnlyHalt(e.err); got != onlyHalt {
			t.Fatalf("only a halt is %v of %+v, want %v", got, e, onlyHalt)
		}
		counts[durable]++
	}
	if counts[true] < 1000 || counts[false] < 1000 {
		t.Errorf("the errors are one-sided, want 1000 of each: %v", counts)
	}
}

// What is durable is not tried again, with and without a write of the status.
func TestDurableErrorsAreNotRetried(t *testing.T) {
	type rtest = rtesting.ReconcilerTestCase
	durable := errors.Join(errBoom, reconcilers.ErrDurable)
	mixed := errors.Join(reconcilers.ErrQuiet, reconcilers.ErrDurable)
	tree := func(change bool, result reconcilers.Result, err error) func(*trace) *widgetRoot {
		return rootOf(func(calls *trace) widgetNode {
			if change {
				return writing(result, err)
			}
			return calls.step("tree", result, err)
		})
	}
	steady := []client.Object{steadyWidget}
	written := []client.Object{steadyWidget.With(statusField("tree", "ran"))}
	nothing := reconcilers.Result{}
	quietly := failStatusWrite(fmt.Errorf("%w: %w", errBoom, reconcilers.ErrQuiet))
	rootTests{
		"alone":                   {root: tree(false, nothing, durable), ReconcilerTestCase: rtest{GivenObjects: steady}},
		"with a delay":            {root: tree(false, minute, durable), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: minute}},
		"with a requeue":          {root: tree(false, requeue, durable), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: requeue}},
		"beside one that is not":  {root: tree(false, nothing, mixed), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: requeue}},
		"written":                 {root: tree(true, nothing, durable), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectStatusUpdates: written, ExpectEvents: []rtesting.Event{statusUpdated}}},
		"written, with a delay":   {root: tree(true, minute, durable), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectStatusUpdates: written, ExpectEvents: []rtesting.Event{statusUpdated}, ExpectedResult: minute}},
		"written, beside another": {root: tree(true, nothing, mixed), ReconcilerTestCase: rtest{GivenObjects: steady, ExpectStatusUpdates: written, ExpectEvents: []rtesting.Event{statusUpdated}, ExpectedResult: requeue}},
		// The change that caused the conflict enqueues the resource.
		"conflict": {root: tree(true, nothing, durable), ReconcilerTestCase: rtest{GivenObjects: steady, WithReactors: failStatusWrite(statusConflict), ExpectStatusUpdates: written}},
		// The write wants another attempt, if the tree does not.
		"the write fails quietly": {root: tree(true, nothing, durable), ReconcilerTestCase: rtest{GivenObjects: steady, WithReactors: quietly, ExpectStatusUpdates: written, ExpectedResult: requeue}},
		"the write fails": {root: tree(true, nothing, durable), ReconcilerTestCase: rtest{
			GivenObjects: steady, WithReactors: failStatusWrite(errBoom), ExpectStatusUpdates: written,
			ExpectEvents: []rtesting.Event{warning("StatusUpdateFailed", "Failed to update status: boom")}, ShouldErr: true,
		}},
		"before": {
			root: func(calls *trace) *widgetRoot {
				r := tree(false, nothing, nil)(calls)
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, durable
				}
				return r
			},
			calls:              []string{},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: minute},
		},
		"after": {
			root: func(calls *trace) *widgetRoot {
				r := tree(false, nothing, nil)(calls)
				r.AfterReconcile = func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, _ error) (reconcilers.Result, error) {
					return result, durable
				}
				return r
			},
			ReconcilerTestCase: rtest{GivenObjects: steady},
		},
	}.run(t)
}

// Controller-runtime warns of a delay or a requeue beside an error, and heeds neither, however often the error is
// retried. Of a result beside an error it heeds the priority.
func TestNoDelayIsReturnedBesideAnError(t *testing.T) {
	priority := 7
	for name, err := range map[string]error{"plain": errBoom, "terminal": reconcile.TerminalError(errBoom)} {
		t.Run(name, func(t *testing.T) {
			root := &widgetRoot{
				Reconciler: &widgetSync{SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
					//lint:ignore SA1019 deprecated, not gone
					return reconcilers.Result{RequeueAfter: minute.RequeueAfter, Requeue: true, Priority: &priority}, err
				}},
				AfterReconcile: func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
					if result.RequeueAfter != minute.RequeueAfter {
						t.Errorf("AfterReconcile gets %+v, want a requeue after %v", result, minute.RequeueAfter)
					}
					return result, err
				},
				Config: expectWidget(steadyWidget).Config(),
			}
			result, got := root.Reconcile(t.Context(), widgetRequest)
			if !errors.Is(got, err) || result != (reconcilers.Result{Priority: &priority}) {
				t.Errorf("it returned %+v and %v, want the priority %d alone and %v", result, got, priority, err)
			}
			if terminal := reconcile.TerminalError(nil); errors.Is(got, terminal) != errors.Is(err, terminal) {
				t.Errorf("the error %v is terminal: %t, want %t", got, errors.Is(got, terminal),
					errors.Is(err, terminal))
			}
		})
	}
}
