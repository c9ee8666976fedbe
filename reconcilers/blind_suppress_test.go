package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// failingPass is a request for a resource whose nested node returns err.
type failingPass struct {
	uid        types.UID
	generation int64
	err        error
	shown      bool
}

func TestSuppressTransientErrorsCounts(t *testing.T) {
	ok := failingPass{uid: "a"}
	hidden := func(err error) failingPass { return failingPass{uid: "a", err: err} }
	shown := func(err error) failingPass { return failingPass{uid: "a", err: err, shown: true} }
	for name, test := range map[string]struct {
		threshold uint8
		passes    []failingPass
	}{
		"the third shows, and those after it": {0, []failingPass{hidden(errBoom), hidden(errBoom), shown(errBoom), shown(errBoom)}},
		"success starts anew": {0, []failingPass{
			hidden(errBoom), hidden(errBoom), ok, hidden(errBoom), hidden(errBoom), shown(errBoom),
		}},
		"a durable error shows and starts anew": {0, []failingPass{
			hidden(errBoom), hidden(errBoom), shown(reconcilers.ErrDurable), hidden(errBoom), hidden(errBoom), shown(errBoom),
		}},
		"a quiet error and a halt count": {0, []failingPass{hidden(errQuiet), hidden(reconcilers.ErrHaltSubReconcilers), shown(errBoom)}},
		"a threshold of one":             {1, []failingPass{shown(errBoom)}},
		"a threshold of two":             {2, []failingPass{hidden(errBoom), shown(errBoom)}},
		"a new generation starts anew": {0, []failingPass{
			{"a", 1, errBoom, false}, {"a", 1, errBoom, false}, {"a", 2, errBoom, false}, {"a", 2, errBoom, false}, {"a", 2, errBoom, true},
		}},
		"each resource for itself": {2, []failingPass{
			{"a", 1, errBoom, false}, {"b", 1, errBoom, false}, {"a", 1, errBoom, true}, {"b", 1, errBoom, true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var next error
			node := &suppress{Threshold: test.threshold, Reconciler: &hooks{
				reconcile: func(context.Context, *resources.Widget) (reconcilers.Result, error) { return minute, next },
			}}
			config := expectWidget().Config()
			for i, pass := range test.passes {
				w := widget.Object()
				w.UID, w.Generation, next = pass.uid, pass.generation, pass.err
				result, err := node.Reconcile(testContext(t, config), w)
				returnsBoth(pass.err, minute)(t, result, err)
				quiet, skips := errors.Is(err, reconcilers.ErrQuiet), errors.Is(err, reconcilers.ErrSkipStatusUpdate)
				switch {
				case pass.err == nil || pass.shown:
					if err != pass.err {
						t.Errorf("pass %d returned %v, expected %v itself", i, err, pass.err)
					}
				case !quiet || !skips:
					t.Errorf("pass %d is not suppressed: %v", i, err)
				}
			}
		})
	}
}

func TestSuppressTransientErrorsKeepsTheRootQuiet(t *testing.T) {
	calls := &trace{}
	config := expectWidget(widget.With(seenBefore))
	config.WithReactors = []rtesting.ReactionFunc{calls.observe}
	root := &widgetRoot{Config: config.Config(), Reconciler: &suppress{Reconciler: &hooks{
		reconcile: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
			w.Status.AddField("failed", "yes")
			return nothing, errBoom
		},
	}}}
	for i := 1; i <= 3; i++ {
		result, err := root.Reconcile(t.Context(), widgetRequest)
		if i < 3 && (result != requeue || err != nil) || i == 3 && (result != nothing || !errors.Is(err, errBoom)) {
			t.Errorf("request %d returned %+v, %v", i, result, err)
		}
		calls.add("request %d", i)
	}
	calls.compare(t, []string{"request 1", "request 2", "update Widget/status", "request 3"})
}

func TestSuppressTransientErrorsLooksOnceADayWhichAreGone(t *testing.T) {
	fail := false
	calls := &trace{reads: true}
	config := &rtesting.ExpectConfig{Scheme: widgetScheme, WithReactors: []rtesting.ReactionFunc{
		calls.observe,
		func(action rtesting.Action) (bool, runtime.Object, error) {
			return fail && action.GetVerb() == "list", nil, errBoom
		},
	}}
	node := &suppress{Reconciler: &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
		calls.add("%s", rtime.RetrieveNow(ctx).Sub(requestTime))
		return nothing, errBoom
	}}}
	for _, pass := range []struct {
		at    time.Duration
		fails bool
		shown bool
	}{
		{at: 0},
		{at: 23 * time.Hour},
		{at: 24*time.Hour + time.Second, fails: true, shown: true},
		{at: 24*time.Hour + 2*time.Second, shown: true}, // the list has no such resource, so its count goes
		{at: 24*time.Hour + 3*time.Second},
		{at: 47 * time.Hour},
	} {
		fail = pass.fails
		ctx := rtime.StashNow(t.Context(), requestTime.Add(pass.at))
		ctx = reconcilers.StashConfig(reconcilers.WithStash(ctx), config.Config())
		_, err := node.Reconcile(ctx, widget.Object())
		if suppressed := errors.Is(err, reconcilers.ErrQuiet); !errors.Is(err, errBoom) || suppressed == pass.shown {
			t.Errorf("at %s returned %v", pass.at, err)
		}
	}
	calls.compare(t, []string{
		"0s", "23h0m0s", "24h0m1s", "list WidgetList", "24h0m2s", "list WidgetList", "24h0m3s", "47h0m0s",
	})
}
