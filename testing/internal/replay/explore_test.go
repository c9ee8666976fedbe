package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// twoSteps creates a ConfigMap, and changes it in the next request.
func twoSteps(ctx context.Context, p *process) error {
	if found, err := exists(ctx, p, "one"); err != nil || !found {
		return errors.Join(err, ignoreExists(p.Create(ctx, configMap("one"))))
	}
	return p.Patch(ctx, configMap("one"), mergePatch(`{"data":{"color":"blue"}}`))
}

// faultsOf returns the faults of a program.
func faultsOf(t *testing.T, program replay.Program) []string {
	t.Helper()
	var all []string
	report := explore(t, program, replay.Options{Skip: func(f fault.Fault) bool {
		all = append(all, f.String())
		return true
	}})
	if report.Replays != 0 {
		t.Errorf("there were %d replays, want none since all were skipped", report.Replays)
	}
	return all
}

func TestEachCallHasTheFaultsThatMatter(t *testing.T) {
	t.Parallel()
	got := faultsOf(t, programOf(given(t, widget()), twoSteps))
	want := []string{
		`Fails("get ConfigMap ns/one")`,
		`Fails("create ConfigMap ns/one")`,
		`DiesAfter("create ConfigMap ns/one")`,
		`LosesAnswer("create ConfigMap ns/one")`,
		`Fails("get ConfigMap ns/one", 2)`,
		`Stale("get ConfigMap ns/one", 2)`,
		`Fails("patch ConfigMap ns/one")`,
		`Conflicts("patch ConfigMap ns/one")`,
		`DiesAfter("patch ConfigMap ns/one")`,
		`LosesAnswer("patch ConfigMap ns/one")`,
		`Fails("get ConfigMap ns/one", 3)`,
		`Stale("get ConfigMap ns/one", 3)`,
		`Fails("patch ConfigMap ns/one", 2)`,
		`Conflicts("patch ConfigMap ns/one", 2)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFaultsThatShowNothingAreLeftOut(t *testing.T) {
	t.Parallel()
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "one"},
		"data": map[string]any{"size": "large"},
	}}
	read := func(ctx context.Context, c client.Reader, name string) {
		if _, err := exists(ctx, c, name); err != nil {
			t.Error(err)
		}
	}
	got := faultsOf(t, programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		read(ctx, p.live, "one")
		err := p.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied.DeepCopy()), client.FieldOwner("test"))
		if err != nil {
			return err
		}
		read(ctx, p.live, "one")
		read(ctx, p, "one")
		read(ctx, p, "one")
		one := mergePatch(`{"data":{"color":"red"}}`)
		if err := p.Patch(ctx, configMap("one"), one, client.DryRunAll); err != nil {
			return err
		}
		if err := p.user.Patch(ctx, configMap("one"), one); err != nil {
			return err
		}
		read(ctx, p, "two")
		return nil
	}))
	want := []string{
		`Fails("get ConfigMap ns/one (live)")`,
		`Fails("apply ConfigMap ns/one")`, // There is nothing that somebody else could write.
		`DiesAfter("apply ConfigMap ns/one")`,
		`LosesAnswer("apply ConfigMap ns/one")`,
		`Fails("get ConfigMap ns/one (live)", 2)`,
		`Fails("get ConfigMap ns/one")`,
		`Stale("get ConfigMap ns/one")`,
		// The second read is as the first: the cache has shown what there is.
		`Fails("patch ConfigMap ns/one (dry run)")`,
		`DiesBefore("get ConfigMap ns/two")`, // Somebody else wrote since the last call.
		`Fails("get ConfigMap ns/two")`,
		`Stale("get ConfigMap ns/two")`,
		`Fails("get ConfigMap ns/one (live)", 3)`,
		`Fails("apply ConfigMap ns/one", 2)`,
		`Conflicts("apply ConfigMap ns/one", 2)`,
		`Fails("get ConfigMap ns/one", 3)`,
		`Fails("patch ConfigMap ns/one (dry run)", 2)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAShareOfTheFaultsIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	for share, replays := range map[int]int{0: 14, 1: 14, 3: 5, 20: 1} {
		report := explore(t, programOf(given(t, widget()), twoSteps), replay.Options{Share: share})
		if report.Replays != replays || len(report.Findings) > 0 {
			t.Errorf("1/%d: got %d replays, want %d, found %v", share, report.Replays, replays, report.Findings)
		}
	}
	// Branches that run at once make their calls in any order.
	names := []string{"one", "two", "three", "four", "five"}
	shared := func() []string {
		var failed []string
		explore(t, programOf(given(t, widget()), func(ctx context.Context, p *process) error {
			for _, name := range names {
				if _, err := exists(ctx, p, name); err != nil {
					failed = append(failed, name)
				}
			}
			return nil
		}), replay.Options{Share: 2})
		slices.Sort(failed)
		return failed
	}
	want := shared()
	slices.Reverse(names[1:])
	if got := shared(); len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASpentBudgetLeavesFaultsOut(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), twoSteps)
	all := len(faultsOf(t, program))
	report := explore(t, program, replay.Options{Budget: time.Nanosecond})
	if report.Replays != 1 || report.Left != all-1 {
		t.Errorf("%d faults were tried and %d left out, want 1 of %d", report.Replays, report.Left, all)
	}
}

func TestFaultsThatDoNotBothHappenAreNoReplay(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error { return p.ensure(ctx, "one") })
	alone := explore(t, program, replay.Options{})
	both := explore(t, program, replay.Options{Pairs: true})
	// Of the fifteen pairs four are at one call, and after two first faults nothing is stale at the second read.
	if alone.Replays != 6 || both.Replays != 6+15-4-2 {
		t.Errorf("there are %d and %d replays, want 6 and %d", alone.Replays, both.Replays, 6+15-4-2)
	}
}

func TestAProgramThatIsNotTheSameTwiceIsNotReplayed(t *testing.T) {
	t.Parallel()
	runs := 0
	tests := map[string]struct {
		code   code
		reason string
	}{
		"no rest": {
			func(ctx context.Context, p *process) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				return p.note(ctx, w, "count", w.Status.Fields["count"]+"x")
			},
			"without a fault it never comes to rest: request 20 ends with a change",
		},
		"an error": {
			func(context.Context, *process) error { return errors.New("no\nway") },
			"without a fault it never comes to rest: request 20 ends with an error: no way",
		},
		"a panic": {
			func(context.Context, *process) error { panic("no way") },
			"without a fault it never comes to rest: request 20 ends with an error: panic: no way",
		},
		"other calls": {
			func(ctx context.Context, p *process) error {
				runs++
				_, err := exists(ctx, p, fmt.Sprint("run-", runs))
				return err
			},
			"two runs without a fault make different calls: get ConfigMap ns/run-1 is not in both in request 1",
		},
		"another end": {
			func(ctx context.Context, p *process) error {
				if found, err := exists(ctx, p, "one"); found || err != nil {
					return err
				}
				runs++
				one := configMap("one")
				one.Data = map[string]string{"run": fmt.Sprint(runs)}
				return p.Create(ctx, one)
			},
			`two runs without a fault end differently: ConfigMap ns/one: data.run is "2", not "1"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			runs = 0
			program := programOf(given(t, widget()), tc.code)
			report, err := replay.Explore(t.Context(), program, replay.Options{})
			if err != nil || report.NotReplayed != tc.reason || report.Replays != 0 || len(report.Findings) > 0 {
				t.Errorf("the report is %+v (%v), want nothing replayed since %s", report, err, tc.reason)
			}
		})
	}
}

func TestCodeThatDoesNotStartEndsTheExploration(t *testing.T) {
	t.Parallel()
	program := programOf(given(t), nil)
	refused := errors.New("no")
	program.Start = func(context.Context, *replay.World) (replay.Instance, error) { return nil, refused }
	_, err := replay.Explore(t.Context(), program, replay.Options{})
	if !errors.Is(err, refused) || err.Error() != "start the code: no" {
		t.Errorf("the error is %v, want start the code: no", err)
	}
	if _, err := replay.Run(t.Context(), program, nil, replay.Options{}); !errors.Is(err, refused) {
		t.Errorf("the error is %v, want %v", err, refused)
	}
}

func TestCodeThatDoesNotStartAfterADeathIsFound(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), twoSteps)
	start := program.Start
	program.Start = func(ctx context.Context, w *replay.World) (replay.Instance, error) {
		if found, err := exists(ctx, w.APIReader(""), "one"); found || err != nil {
			return nil, errors.Join(err, errors.New("somebody was here"))
		}
		return start(ctx, w)
	}
	found := shortest(t, explore(t, program, replay.Options{}))
	want := `[DiesAfter("create ConfigMap ns/one")]
get ConfigMap one (live) (NotFound) · create ConfigMap one · † · 39 times: get ConfigMap one (live) · †
never comes to rest: request 40 ends with an error: start the code: somebody was here`
	if got := told(found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestADoneContextEndsTheExploration(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	starts := 0
	program := programOf(given(t, widget()), twoSteps)
	start := program.Start
	program.Start = func(ctx context.Context, w *replay.World) (replay.Instance, error) {
		if starts++; starts == 5 {
			cancel()
		}
		return start(ctx, w)
	}
	report, err := replay.Explore(ctx, program, replay.Options{})
	if !errors.Is(err, context.Canceled) || report.Replays < 1 || starts != 5 {
		t.Errorf("the report is %+v (%v) after %d starts, want a replay or more and %v after 5", report, err, starts,
			context.Canceled)
	}
}

func TestAFaultThatDoesNotHappenIsAnError(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), twoSteps)
	for want, f := range map[string]fault.Fault{
		`Fails("create ConfigMap ns/two") did not happen; the calls without a fault are ["get ConfigMap ns/one" ` +
			`"create ConfigMap ns/one" "get ConfigMap ns/one" "patch ConfigMap ns/one" "get ConfigMap ns/one" ` +
			`"patch ConfigMap ns/one"]`: {Kind: fault.Fails, Path: "create ConfigMap ns/two"},
		// The object to write does not exist.
		`Conflicts("create ConfigMap ns/one") did not happen`: {
			Kind: fault.Conflicts, Path: "create ConfigMap ns/one",
		},
		// Nothing of the kind changed yet.
		`Stale("get ConfigMap ns/one") did not happen`: {Kind: fault.Stale, Path: "get ConfigMap ns/one"},
		// It is no read.
		`Stale("patch ConfigMap ns/one") did not happen`: {Kind: fault.Stale, Path: "patch ConfigMap ns/one"},
	} {
		_, err := replay.Run(t.Context(), program, []fault.Fault{f}, replay.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTwoFaultsFindWhatOneDoesNot(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		for _, name := range []string{"one", "two"} {
			if err := p.ensure(ctx, name); err != nil {
				if p.memory["failed"] != "" {
					return nil // The code gives up.
				}
				p.memory["failed"] = "yes"
				return err
			}
		}
		return nil
	})
	alone := explore(t, program, replay.Options{})
	if len(alone.Findings) > 0 {
		t.Errorf("one fault finds something, want nothing:\n%s", told(alone.Findings[0]))
	}
	both := explore(t, program, replay.Options{Pairs: true})
	want := `[Fails("get ConfigMap ns/one") Fails("create ConfigMap ns/one")]
get ConfigMap one (fails) · error · get ConfigMap one (NotFound) · create ConfigMap one (fails) · rest
missing: ConfigMap ns/one
missing: ConfigMap ns/two`
	if got := told(both.Findings[0]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if most := alone.Replays + 120; both.Replays > most {
		t.Errorf("got %d replays, want %d at most", both.Replays, most)
	}
}

func TestShrinkKeepsWhatAFindingNeeds(t *testing.T) {
	t.Parallel()
	objs := []client.Object{widget(), configMap("x"), configMap("y"), configMap("z"), colored("red"), configMap("v")}
	build := func(objs []client.Object) (replay.Program, error) {
		for _, obj := range objs {
			if _, ok := obj.(*resources.Widget); ok {
				return programOf(given(t, objs...), bugs["overwritten change of somebody else"].wrong(nil)), nil
			}
		}
		return replay.Program{}, errors.New("nothing is reconciled")
	}
	program, err := build(objs)
	if err != nil {
		t.Fatal(err)
	}
	finding := shortest(t, explore(t, program, replay.Options{}))
	left, smaller := replay.Shrink(t.Context(), objs, build, finding, replay.Options{})
	if len(left) != 2 || left[0] != objs[0] || left[1] != objs[4] {
		t.Errorf("the objects left are %v, want %v", left, []client.Object{objs[0], objs[4]})
	}
	if told(smaller) != told(finding) {
		t.Errorf("got\n%s\nwant\n%s", told(smaller), told(finding))
	}
}

func TestShrinkStaysWithTheFinding(t *testing.T) {
	t.Parallel()
	// Without the ConfigMap x there is a finding, too, but another one.
	objs := []client.Object{widget(), configMap("x"), configMap("y")}
	build := func(objs []client.Object) (replay.Program, error) {
		return programOf(given(t, objs...), func(ctx context.Context, p *process) error {
			if w, err := p.widget(ctx); w == nil || err != nil {
				return nil
			}
			if found, err := exists(ctx, p, "x"); found || err != nil {
				return errors.Join(err, p.ensure(ctx, "one"))
			}
			return p.ensure(ctx, "two")
		}), nil
	}
	program, err := build(objs)
	if err != nil {
		t.Fatal(err)
	}
	finding := shortest(t, explore(t, program, replay.Options{}))
	left, smaller := replay.Shrink(t.Context(), objs, build, finding, replay.Options{})
	if len(left) != 2 || left[1] != objs[1] || told(smaller) != told(finding) {
		t.Errorf("the objects left are %v, want 2, with the same finding, not\n%s", left, told(smaller))
	}
}

func TestShrinkLeavesOutWhatIsNeededByWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	objs := []client.Object{configMap("y"), widget(), configMap("x"), colored("red")}
	build := func(left []client.Object) (replay.Program, error) {
		if slices.Contains(left, objs[2]) && !slices.Contains(left, objs[0]) {
			return replay.Program{}, errors.New("x needs y")
		}
		return programOf(given(t, left...), bugs["overwritten change of somebody else"].wrong(nil)), nil
	}
	program, err := build(objs)
	if err != nil {
		t.Fatal(err)
	}
	finding := shortest(t, explore(t, program, replay.Options{}))
	left, _ := replay.Shrink(t.Context(), objs, build, finding, replay.Options{})
	if want := []client.Object{objs[1], objs[3]}; !slices.Equal(left, want) {
		t.Errorf("the objects left are %v, want %v", left, want)
	}
}

func TestADelayPassesAtOnce(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), nil)
	program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
		c := w.Client("")
		return func(ctx context.Context) (reconcile.Result, error) {
			if left := begin.Add(time.Hour).Sub(w.Now()); left > 0 {
				return reconcile.Result{RequeueAfter: left}, nil
			}
			return reconcile.Result{RequeueAfter: time.Minute}, ignoreExists(c.Create(ctx, configMap("one")))
		}, nil
	}
	report := explore(t, program, replay.Options{})
	if report.Replays < 3 || len(report.Findings) > 0 {
		t.Errorf("the report is %+v, want at least 3 replays and no finding", report)
	}
}

// A fault that has no effect did not happen.
func TestACacheThatHasShownAChangeIsNotStale(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		err := p.ensure(ctx, "one")
		for range 2 {
			_, found := exists(ctx, p, "one")
			err = errors.Join(err, found)
		}
		return err
	})
	for occurrence, happens := range map[int]bool{2: true, 3: false} {
		stale := fault.Fault{Kind: fault.Stale, Path: "get ConfigMap ns/one", Nth: occurrence}
		finding, err := replay.Run(t.Context(), program, []fault.Fault{stale}, replay.Options{})
		if finding != nil || (err == nil) != happens || err != nil && !strings.Contains(err.Error(), "did not happen") {
			t.Errorf("%s: the finding is %v and the error %v, want none, and that it happens: %t", stale, finding, err,
				happens)
		}
	}
}

// The request that shows what remains at rest is followed by no other, in which what a fault did would be mended.
func TestNoFaultHappensInTheRequestAfterRest(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		_, err := exists(ctx, p, "one")
		if err == nil && p.memory["failed"] != "" {
			delete(p.memory, "failed")
			_, err = exists(ctx, p.live, "two")
		} else if err != nil {
			p.memory["failed"] = "yes"
		}
		return err
	})
	faults := []fault.Fault{
		{Kind: fault.Fails, Path: "get ConfigMap ns/one"},
		{Kind: fault.DiesBefore, Path: "get ConfigMap ns/one", Nth: 3},
	}
	finding, err := replay.Run(t.Context(), program, faults, replay.Options{})
	if finding != nil || err == nil || !strings.HasPrefix(err.Error(), faults[1].String()+" did not happen") {
		t.Errorf("the finding is %v and the error %v, want none, and that %s did not happen", finding, err, faults[1])
	}
}
