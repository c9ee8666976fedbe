package replay_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	rtime "github.com/espalier-dev/espalier/time"
)

// logged is a program that notes when its runs and instances begin and end.
func logged(t *testing.T) (replay.Program, *[]string) {
	var log []string
	note := func(what string) { log = append(log, what) }
	program := programOf(given(t, widget()), nil, replay.External{
		Reset: func() { note("reset") }, End: func() any { return nil },
	})
	program.Begin = func(ctx context.Context) (func(), error) {
		if now := rtime.RetrieveNow(ctx); !now.Equal(begin) {
			t.Errorf("the run begins at %s, want %s", now, begin)
		}
		note("begin")
		return func() { note("end") }, nil
	}
	program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
		note("start")
		return func(ctx context.Context) (reconcile.Result, error) {
			return reconcile.Result{}, ignoreExists(w.Client("").Create(ctx, configMap("one")))
		}, nil
	}
	return program, &log
}

func TestARunHasABeginAndAnEnd(t *testing.T) {
	t.Parallel()
	program, log := logged(t)
	run(t, program, fault.Fault{Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"})
	want := []string{"reset", "begin", "start", "end", "reset", "begin", "start", "start", "end"}
	if !slices.Equal(*log, want) {
		t.Errorf("the log is %v, want %v", *log, want)
	}
}

func TestARunThatDoesNotBeginHasNoEnd(t *testing.T) {
	t.Parallel()
	program, log := logged(t)
	refused := errors.New("refused")
	program.Begin = func(context.Context) (func(), error) { return nil, refused }
	if _, err := replay.Explore(t.Context(), program, replay.Options{}); !errors.Is(err, refused) {
		t.Errorf("the error is %v, want %v", err, refused)
	}
	if want := []string{"reset"}; !slices.Equal(*log, want) {
		t.Errorf("the log is %v, want %v", *log, want)
	}
}
