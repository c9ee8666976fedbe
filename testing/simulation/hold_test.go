package simulation

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/internal/fault"
)

// heartbeat writes a ConfigMap each second, and takes down the attempts that took longer than that.
type heartbeat struct {
	beats int
	slow  []attempted
}

// attempted is how an attempt ended, and when.
type attempted struct {
	err  error
	took time.Duration
}

var heartbeats External[heartbeat]

// beats is an operator that gives its writes three seconds.
func beats(ctx context.Context, mgr ctrl.Manager) error {
	h := heartbeats.In(ctx)
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			begin := time.Now()
			err := h.beat(ctx, mgr.GetClient())
			if took := time.Since(begin); took >= time.Second {
				h.slow = append(h.slow, attempted{err, took})
			}
		}
		return nil
	}))
}

func (h *heartbeat) beat(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	h.beats++
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"beat":"`+time.Now().String()+`"}}`))
	return c.Patch(ctx, original("beat", ""), patch)
}

// last returns the version of the ConfigMap.
func last(w *World) string {
	beat := original("beat", "")
	w.Get(beat)
	return beat.ResourceVersion
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: beats, Objects: []client.Object{original("beat", "")}}, func(w *World) {
		w.Pass(5 * time.Second)
		w.Freeze()
		w.Pass(5 * time.Second)
		before, h := last(w), heartbeats.Of(w)
		count := h.beats
		w.Pass(time.Hour)
		if after := last(w); after != before || h.beats > count+1 {
			w.Errorf("the process wrote version %s and %d times more, want %s and once at most",
				after, h.beats-count, before)
		}
		w.Resume()
		w.Pass(5 * time.Second)
		if last(w) == before {
			w.Error("the process does not go on")
		}
		if len(h.slow) != 1 || h.slow[0].err == nil || h.slow[0].took < time.Hour {
			w.Errorf("attempts that took long: %v, want one that failed when the process went on", h.slow)
		}
	})
}

func TestPartitioned(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: beats, Objects: []client.Object{original("beat", "")}}, func(w *World) {
		w.Pass(5 * time.Second)
		w.Partition(Operator)
		w.Pass(5 * time.Second)
		before, h := last(w), heartbeats.Of(w)
		count := h.beats
		w.Pass(time.Hour)
		if after := last(w); after != before || h.beats < count+100 {
			w.Errorf("the process wrote version %s and tried %d times more, want %s and many times",
				after, h.beats-count, before)
		}
		w.Resume(Operator)
		w.Pass(5 * time.Second)
		if last(w) == before {
			w.Error("the process does not go on")
		}
		if len(h.slow) == 0 || !errors.Is(h.slow[0].err, context.DeadlineExceeded) || h.slow[0].took > 4*time.Second {
			w.Errorf("attempts that took long: %v, want some that were given up after three seconds", h.slow)
		}
	})
}

var outside External[int]

// callsOutside is an operator that calls something outside of the cluster each second.
func callsOutside(ctx context.Context, _ ctrl.Manager) error {
	n := outside.In(ctx)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			_ = fault.CallOutside(ctx, "count", func() error { *n++; return nil }) // it is counted or not
		}
	}()
	return nil
}

func TestNothingOutsideIsCalledByAFrozenProcess(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: callsOutside}, func(w *World) {
		w.Pass(5 * time.Second)
		w.Freeze()
		before := *outside.Of(w)
		w.Pass(time.Hour)
		if after := *outside.Of(w); before == 0 || after != before {
			w.Errorf("%d calls before the process stands still, and %d at the end, want some and no more", before, after)
		}
		w.Resume()
		w.Pass(5 * time.Second)
		if *outside.Of(w) == before {
			w.Error("the process does not go on")
		}
	})
}

// What is seen in a watch arrives when the process goes on.
func TestEventsArriveAfterwards(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *World){
		"frozen":      func(w *World) { w.Freeze() },
		"partitioned": func(w *World) { w.Partition() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, Options{Operator: workers}, func(w *World) {
				w.Create(original("a", ""))
				w.Pass(time.Minute)
				worked(w, "operator a")
				begin(w)
				w.Create(original("b", ""))
				w.Pass(time.Minute)
				worked(w)
				w.Resume()
				w.Pass(time.Minute)
				worked(w, "operator b")
			})
		})
	}
}

// A replica may be killed, stopped, and there at the end while it stands still.
func TestHeldReplicasEnd(t *testing.T) {
	t.Parallel()
	for _, frozen := range []bool{false, true} {
		options := Options{Operator: workers, Replicas: 2}
		Run(t, options, func(w *World) { w.hold("hold", frozen, nil) })
		Run(t, options, func(w *World) {
			w.hold("hold", frozen, nil)
			w.Kill()
			w.Pass(time.Minute)
			w.Stop(Operator)
			w.Resume()
			w.Start()
			w.Create(original("a", ""))
			w.Pass(time.Minute)
			worked(w, "operator a", "operator-2 a")
		})
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	var actor string
	prepare := func(_ context.Context, config *rest.Config, options *ctrl.Options) (
		func(context.Context, ctrl.Manager) error, error,
	) {
		actor = config.UserAgent
		options.Cache.DefaultNamespaces = map[string]cache.Config{"elsewhere": {}}
		return workers, nil
	}
	Run(t, Options{Prepare: prepare, Operator: func(context.Context, ctrl.Manager) error {
		return errors.New("Operator is called beside Prepare")
	}}, func(w *World) {
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, original("a", ""))
		there := original("b", "")
		there.Namespace = "elsewhere"
		w.Create(there)
		w.Pass(time.Minute)
		worked(w, "operator b")
		if actor != Operator {
			w.Errorf("the process is called %q, want %q", actor, Operator)
		}
	})
}
