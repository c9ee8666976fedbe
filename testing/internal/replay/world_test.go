package replay_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/store"
	rtime "github.com/espalier-dev/espalier/time"
)

// run runs a program with faults, and fails the test if the end is not that without them.
func run(t *testing.T, program replay.Program, faults ...fault.Fault) {
	t.Helper()
	found, err := replay.Run(t.Context(), program, faults, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if found != nil {
		t.Errorf("there is a finding, want none:\n%s", told(*found))
	}
}

func TestADeadInstanceDoesNothing(t *testing.T) {
	t.Parallel()
	for kind, made := range map[fault.Kind]bool{fault.DiesBefore: false, fault.DiesAfter: true} {
		var left []*process
		program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
			if found, err := exists(ctx, p.live, "one"); found || err != nil {
				return err
			}
			err := p.Create(ctx, configMap("one"))
			if err == nil {
				return nil
			}
			left = append(left, p)
			if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
				t.Errorf("the error is %v with a context that says %v, want %v of both", err, ctx.Err(),
					context.Canceled)
			}
			for _, err := range []error{
				p.Create(context.Background(), configMap("two")), p.Delete(context.Background(), widget()),
				p.Get(context.Background(), client.ObjectKeyFromObject(widget()), widget()),
				p.live.Get(context.Background(), client.ObjectKeyFromObject(widget()), widget()),
				p.world.Client("").Create(context.Background(), configMap("two")),
				p.world.Do(context.Background(), "POST /", func() error { panic("it is dead") }),
			} {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("a dead client answers %v, want %v", err, context.Canceled)
				}
			}
			if found, err := exists(context.Background(), p.user, "one"); found != made || err != nil {
				t.Errorf("%s: the object is there: %t (%v), want %t", kind, found, err, made)
			}
			return nil
		})
		run(t, program, fault.Fault{Kind: kind, Path: "create ConfigMap ns/one"})
		if len(left) != 1 {
			t.Fatalf("%d instances died, want 1", len(left))
		}
		// The other clients of the run are dead by now, too.
		if err := left[0].Create(context.Background(), configMap("two")); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want %v", err, context.Canceled)
		}
	}
}

func TestCallsFailAsThoseOfARealClient(t *testing.T) {
	t.Parallel()
	tests := map[fault.Kind]struct {
		is   func(error) bool
		made bool
	}{
		fault.Fails:       {apierrors.IsInternalError, false},
		fault.LosesAnswer: {func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, true},
	}
	for kind, tc := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			failures := 0
			program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
				err := p.Create(ctx, configMap("one"))
				if err == nil || apierrors.IsAlreadyExists(err) {
					return nil
				}
				failures++
				if !tc.is(err) {
					t.Errorf("the error is %v, want that of the fault %s", err, kind)
				}
				if found, err := exists(ctx, p, "one"); found != tc.made || err != nil {
					t.Errorf("the object is there: %t (%v), want %t", found, err, tc.made)
				}
				return err
			})
			found, err := replay.Run(t.Context(), program,
				[]fault.Fault{{Kind: kind, Path: "create ConfigMap ns/one"}}, replay.Options{})
			if err != nil || found != nil || failures != 1 {
				t.Errorf("the finding is %v (%v) after %d failures, want none after 1", found, err, failures)
			}
		})
	}
}

func TestAConflictIsARealWrite(t *testing.T) {
	t.Parallel()
	conflicts := 0
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		w, err := p.widget(ctx)
		if err != nil {
			return err
		}
		err = p.note(ctx, w, "color", "blue")
		if apierrors.IsConflict(err) {
			conflicts++
			now, err := p.widget(ctx)
			if err != nil || len(now.Annotations) != 1 || now.ResourceVersion == w.ResourceVersion {
				t.Errorf("the widget is %v (%v), want one annotation and another version than %s", now, err,
					w.ResourceVersion)
			}
		}
		return err
	})
	run(t, program, fault.Fault{Kind: fault.Conflicts, Path: "update Widget/status ns/a"})
	if conflicts != 1 {
		t.Errorf("there are %d conflicts, want 1", conflicts)
	}
}

func TestACacheLagsUntilTheRequestEnds(t *testing.T) {
	t.Parallel()
	var seen []bool
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		for _, reader := range []client.Reader{p, p.live, p} {
			found, err := exists(ctx, reader, "one")
			if err != nil {
				return err
			}
			seen = append(seen, found)
		}
		return ignoreExists(p.Create(ctx, configMap("one")))
	})
	// The first three are the request that creates, and the others follow.
	run(t, program, fault.Fault{Kind: fault.Stale, Path: "get ConfigMap ns/one", Nth: 3})
	reference := 6
	want := []bool{false, false, false, false, true, false, true, true, true}
	if got := seen[reference:]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatTheCacheHasNotSeenComesWithAnotherRequest(t *testing.T) {
	t.Parallel()
	var seen []bool
	program := programOf(nil, func(ctx context.Context, p *process) error {
		found, err := exists(ctx, p, "one")
		seen = append(seen, found)
		return err
	})
	key := store.Key{Namespace: "ns", Name: "one"}
	key.Kind.Kind = "ConfigMap"
	program.Clusters[""] = replay.Cluster{Store: given(t, widget(), configMap("one")), Hidden: []store.Key{key}}
	run(t, program)
	if want := []bool{false, true, false, true}; !slices.Equal(seen, want) {
		t.Errorf("got %v in two runs, want %v", seen, want)
	}
}

func TestTimeIsThatOfTheWorld(t *testing.T) {
	t.Parallel()
	var times []time.Time
	later := begin.Add(time.Minute)
	program := programOf(given(t, widget()), nil)
	program.Start = func(ctx context.Context, w *replay.World) (replay.Instance, error) {
		times = append(times, rtime.RetrieveNow(ctx))
		c := w.Client("")
		return func(ctx context.Context) (reconcile.Result, error) {
			times = append(times, rtime.RetrieveNow(ctx))
			if w.Now().Before(later) {
				return reconcile.Result{RequeueAfter: time.Minute}, nil
			}
			one := configMap("one")
			err := c.Create(ctx, one)
			times = append(times, one.CreationTimestamp.Time)
			return reconcile.Result{}, ignoreExists(err)
		}, nil
	}
	if _, err := replay.Run(t.Context(), program, nil, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	want := []time.Time{begin, begin, later, later}
	if !slices.EqualFunc(times[:len(want)], want, time.Time.Equal) {
		t.Errorf("got %v, want %v", times, want)
	}
}

// In a bubble, the time of the world and that of code which waits by itself are one.
func TestTimeIsThatOfTheBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		program := programOf(given(t, widget()), nil)
		program.Now = time.Time{}
		var created time.Time
		program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
			c, later := w.Client(""), w.Now().Add(time.Minute)
			return func(context.Context) (reconcile.Result, error) {
				if w.Now().Before(later) {
					time.Sleep(time.Second)
					return reconcile.Result{RequeueAfter: time.Minute}, nil
				}
				one := configMap("one")
				err := c.Create(t.Context(), one)
				if err == nil && created.IsZero() {
					created = one.CreationTimestamp.Time
				}
				return reconcile.Result{}, ignoreExists(err)
			}, nil
		}
		run(t, program)
		if want := began.Add(time.Minute + time.Second); !created.Equal(want) {
			t.Errorf("the object was created at %s, want %s", created, want)
		}
	})
}

func TestADelayEndsWhenSomethingChanges(t *testing.T) {
	t.Parallel()
	var times []time.Time
	program := programOf(given(t, widget()), nil)
	program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
		c := w.Client("")
		return func(ctx context.Context) (reconcile.Result, error) {
			times = append(times, w.Now())
			return reconcile.Result{RequeueAfter: time.Hour}, ignoreExists(c.Create(ctx, configMap("one")))
		}, nil
	}
	if _, err := replay.Run(t.Context(), program, nil, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	next := begin.Add(time.Second)
	if len(times) < 4 || !times[1].Equal(next) || !times[2].Equal(next.Add(time.Hour)) {
		t.Errorf("the times are %v, want the second %v and the third an hour later", times, next)
	}
}

func TestGarbageIsCollectedBetweenRequests(t *testing.T) {
	t.Parallel()
	s := given(t, widget())
	owner := configMap("owner")
	dependent := configMap("dependent")
	dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name}}
	if err := s.Give(owner, dependent); err != nil {
		t.Fatal(err)
	}
	var seen []bool
	program := programOf(s, func(ctx context.Context, p *process) error {
		found, err := exists(ctx, p, dependent.Name)
		seen = append(seen, found)
		return errors.Join(err, client.IgnoreNotFound(p.Delete(ctx, configMap(owner.Name))))
	})
	run(t, program)
	if want := []bool{true, false, true, false}; !slices.Equal(seen, want) {
		t.Errorf("got %v in two runs, want %v", seen, want)
	}
}

func TestADoneContextMakesNoCall(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := p.world.Do(done, "POST /", func() error { panic("it is done") }); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want %v", err, context.Canceled)
		}
		if err := p.Create(done, configMap("one")); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want %v", err, context.Canceled)
		}
		found, err := exists(ctx, p, "one")
		if found {
			t.Error("the object was created, want it not to be")
		}
		return err
	})
	run(t, program)
}

func TestCallsMayOutliveTheirRequest(t *testing.T) {
	t.Parallel()
	var left sync.WaitGroup
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		left.Go(func() {
			for range 100 {
				_, _ = exists(context.Background(), p, "other")
				_ = p.world.Do(context.Background(), "GET /", func() error { return nil })
			}
		})
		return p.ensure(ctx, "one")
	})
	for range 10 {
		struck := fault.Fault{Kind: fault.LosesAnswer, Path: "create ConfigMap ns/one"}
		ignore := func(_, path string) bool { return path == "rest" }
		found, err := replay.Run(t.Context(), program, []fault.Fault{struck}, replay.Options{Ignore: ignore})
		if found != nil || err != nil {
			t.Errorf("the finding is %v (%v), want none", found, err)
		}
	}
	left.Wait()
}

// stubborn returns a program whose result is the same each time.
func stubborn(t *testing.T, make func() (reconcile.Result, error)) replay.Program {
	program := programOf(given(t, widget()), nil)
	program.Start = func(context.Context, *replay.World) (replay.Instance, error) {
		return func(context.Context) (reconcile.Result, error) { return make() }, nil
	}
	return program
}

func TestWhenARunIsAtRest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		make func() (reconcile.Result, error)
		// requests are those of one run.
		requests int
	}{
		"at once":    {func() (reconcile.Result, error) { return reconcile.Result{}, nil }, 1},
		"polls":      {func() (reconcile.Result, error) { return reconcile.Result{RequeueAfter: time.Hour}, nil }, 3},
		"error":      {func() (reconcile.Result, error) { return reconcile.Result{}, errors.New("no") }, 20},
		"last error": {func() (reconcile.Result, error) { return reconcile.Result{}, reconcile.TerminalError(nil) }, 1},
		"panic":      {func() (reconcile.Result, error) { panic("no") }, 20},
		"exit":       {func() (reconcile.Result, error) { runtime.Goexit(); panic("unreachable") }, 20},
		//lint:ignore SA1019 Code under test may still set it.
		"more to do": {func() (reconcile.Result, error) { return reconcile.Result{Requeue: true}, nil }, 20},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			program := stubborn(t, func() (reconcile.Result, error) {
				requests++
				return tc.make()
			})
			report, err := replay.Explore(t.Context(), program, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runs := 2
			if report.NotReplayed != "" {
				runs = 1
			}
			if requests != runs*tc.requests {
				t.Errorf("there are %d requests in %d runs, want %d of each: %s", requests, runs, tc.requests,
					report.NotReplayed)
			}
			if (tc.requests == 20) != (report.NotReplayed != "") {
				t.Errorf("it is not replayed since %q, want a reason: %t", report.NotReplayed, tc.requests == 20)
			}
		})
	}
}

func TestBranchesMayRunAtOnce(t *testing.T) {
	// Not in parallel, because goroutines of other tests would count.
	before := goleak.IgnoreCurrent()
	var wrong sync.Map
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		var all errgroup.Group
		for i := range 5 {
			all.Go(func() error { return p.ensure(ctx, fmt.Sprint("child-", i)) })
		}
		// It outlives the request, and the instance.
		go func() {
			<-ctx.Done()
			if err := p.Create(context.Background(), configMap("late")); !errors.Is(err, context.Canceled) {
				wrong.Store(err, true)
			}
		}()
		return all.Wait()
	})
	report := explore(t, program, replay.Options{})
	if report.Replays < 5*4 || len(report.Findings) > 0 {
		t.Errorf("the report is %+v, want at least %d replays and no finding", report, 5*4)
	}
	goleak.VerifyNone(t, before)
	wrong.Range(func(err, _ any) bool {
		t.Errorf("a call of a dead instance answers %v, want %v", err, context.Canceled)
		return true
	})
}

func TestEachClusterHasItsOwnName(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		w := &resources.Widget{}
		if err := p.Get(ctx, client.ObjectKeyFromObject(widget()), w); err != nil {
			return err
		}
		remote := p.world.Client("remote")
		if err := remote.Get(ctx, client.ObjectKeyFromObject(configMap("one")), configMap("")); err == nil {
			return nil
		}
		if err := remote.Create(ctx, configMap("one")); err != nil {
			return err
		}
		return remote.Create(ctx, configMap("two"))
	})
	program.Clusters["remote"] = replay.Cluster{Store: given(t, configMap("other"))}
	found := shortest(t, explore(t, program, replay.Options{}))
	want := `[DiesAfter("create ConfigMap ns/one in remote")]
get Widget a · create ConfigMap one in remote · † · get Widget a · rest
missing: ConfigMap ns/two in remote`
	if got := told(found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
