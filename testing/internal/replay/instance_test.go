package replay_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// counted counts how often instances of a program start.
func counted(program *replay.Program) *int {
	start, starts := program.Start, 0
	program.Start = func(ctx context.Context, w *replay.World) (replay.Instance, error) {
		starts++
		return start(ctx, w)
	}
	return &starts
}

func TestAStartThatPanicsIsAnErrorOfIt(t *testing.T) {
	t.Parallel()
	for want, start := range map[string]func(){
		"start the code: panic: no way":                                           func() { panic("no way") },
		"start the code: the code ended its goroutine, as FailNow of a test does": runtime.Goexit,
	} {
		starts := 0
		program := programOf(given(t), nil)
		program.Start = func(context.Context, *replay.World) (replay.Instance, error) {
			starts++
			start()
			return nil, nil
		}
		_, err := replay.Explore(t.Context(), program, replay.Options{})
		if err == nil || err.Error() != want || starts != 1 {
			t.Errorf("got %v after %d starts, want %s", err, starts, want)
		}
	}
}

func TestAStartThatPanicsAfterADeathIsADeath(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), twoSteps)
	start := program.Start
	var starts *int
	program.Start = func(ctx context.Context, w *replay.World) (replay.Instance, error) {
		if *starts == 3 { // After the run without a fault, and the instance that died.
			panic("no way")
		}
		return start(ctx, w)
	}
	starts = counted(&program)
	run(t, program, fault.Fault{Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"})
	if *starts != 4 {
		t.Errorf("there are %d starts, want 4", *starts)
	}
}

// What a dead instance left behind does not count for a new one.
func TestADeadInstanceDoesNotMakeARequestEndless(t *testing.T) {
	t.Parallel()
	next, left := make(chan struct{}), make(chan struct{})
	var starts *int
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		found, err := exists(ctx, p, "one")
		if err != nil || found && *starts != 3 {
			return err
		}
		if found {
			close(next)
			<-left
			*starts++
			return p.ensure(ctx, "one")
		}
		if err = p.Create(ctx, configMap("one")); err != nil {
			go func() {
				defer close(left)
				<-next
				for range 20_000 {
					_ = p.Create(context.Background(), configMap("one"))
				}
			}()
		}
		return err
	})
	starts = counted(&program)
	run(t, program, fault.Fault{Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"})
}

func TestCodeThatDoesNotReturnIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
			err := p.ensure(ctx, "one")
			if errors.Is(err, context.Canceled) {
				<-forever
			}
			return err
		})
		program.Patience = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := replay.Explore(ctx, program, replay.Options{})
		want := `after DiesAfter("create ConfigMap ns/one"): the code does not return: context deadline exceeded`
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

// Code that returns because the context of the exploration is done is not told to hang.
func TestCodeThatReturnsWhenTheContextIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		program := programOf(given(t, widget()), func(ctx context.Context, _ *process) error {
			<-ctx.Done()
			return ctx.Err()
		})
		program.Patience = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := replay.Explore(ctx, program, replay.Options{})
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "return") {
			t.Errorf("the error is %v, want %v, and nothing of the code that does not return", err,
				context.DeadlineExceeded)
		}
	})
}

// A call to something outside of the clusters goes on when its instance is dead.
func TestWhatIsOutsideIsLookedAtOnceTheDeadAreQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := false
		look := func() {
			if busy {
				t.Error("a call goes on, want none")
			}
		}
		var starts *int
		program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
			begun := make(chan struct{})
			if *starts != 2 { // The first run has no fault.
				return p.ensure(ctx, "one")
			}
			go func() {
				_ = p.world.Do(ctx, "POST /", func() error {
					busy = true
					close(begun)
					<-ctx.Done()
					time.Sleep(time.Second)
					busy = false
					return nil
				})
			}()
			<-begun
			return p.ensure(ctx, "one")
		}, replay.External{Reset: look, End: func() any { look(); return nil }})
		starts = counted(&program)
		run(t, program, fault.Fault{Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"})
	})
}
