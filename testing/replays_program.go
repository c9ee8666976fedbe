package testing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/store"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// patience is how long one request of a replay may take; 0 is the default.
var patience time.Duration

// program returns what is replayed, with the given objects of a config.
func (r *replayed) program(t *testing.T, own ExpectConfig) (replay.Program, error) {
	clusters := map[string]replay.Cluster{}
	var problems []string
	add := func(name string, c ExpectConfig) {
		given := c.given()
		s, hidden, wrong := given.NewStore()
		clusters[name] = replay.Cluster{
			Store: s, Hidden: hidden, Options: store.ClientOptions{Indexes: given.Indexes},
		}
		problems = append(problems, wrong...)
	}
	add("", own)
	for name, c := range r.additional {
		add(name, *c)
	}
	var externals []replay.External
	for i := range r.row.externals {
		externals = append(externals, replay.External{End: func() any { return r.external(i).End() }})
	}
	if len(problems) > 0 {
		return replay.Program{}, errors.New(strings.Join(problems, "; "))
	}
	program := replay.Program{
		Clusters: clusters, Now: *r.row.now, Externals: externals, Begin: r.beginRun, Start: r.start,
		IgnoreObserved: r.ofNode, Patience: patience, Request: r.request.NamespacedName,
	}
	if r.row.virtual {
		program.Within = r.inBubble
	}
	return program, nil
}

// inBubble calls a run in a bubble of its own: all begin at the same time.
func (r *replayed) inBubble(attempt func()) {
	outer := r.t
	outer.Helper()
	defer func() { r.t = outer }()
	run.InVirtualTime(outer, true, func(t *testing.T) {
		t.Helper()
		defer words.FailOnPanic(t)
		r.t = t
		attempt()
	})
}

// external returns an external as the Prepare of the run left it.
func (r *replayed) external(i int) External {
	if r.current != nil && i < len(r.current.externals) {
		return r.current.externals[i]
	}
	return r.row.externals[i]
}

// beginRun calls the Prepare of a run, and returns what calls its CleanUp. Their context ends after CleanUp.
func (r *replayed) beginRun(ctx context.Context) (end func(), err error) {
	t := r.t
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	begun, err := r.begin(t, ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	r.current = begun
	return func() {
		t.Helper()
		defer cancel()
		r.noteFirst(begun)
		r.current = nil
		if err := begun.end(); err != nil {
			t.Errorf("error during clean up of a replay: %s", err)
		}
	}, nil
}

// start makes an instance of the code in a world.
func (r *replayed) start(_ context.Context, w *replay.World) (replay.Instance, error) {
	current, own := r.current, r.expect.inWorld(w, "")
	current.journals = map[string]*recording.Journal{"": own.Journal}
	configs := map[string]reconcilers.Config{}
	for name, c := range r.additional {
		other := c.inWorld(w, name)
		current.journals[name], configs[name] = other.Journal, other.Config
	}
	prepared := reconcilers.StashAdditionalConfigs(current.ctx, configs)
	reconciler, err := current.start(own.Config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (reconcile.Result, error) {
		current.pass(w.Now(), r.row.virtual)
		ctx = fault.WithCaller(ctx, outside{w, &r.outside})
		result, err := reconciler.Reconcile(run.Merged(ctx, prepared), r.request)
		if !r.row.until.rest {
			r.noteFirst(current)
		}
		return queued(result), err
	}, nil
}

// pass lets the time of the process pass too if it is virtual: until now, which is that of the world.
func (a *begun) pass(now time.Time, virtual bool) {
	if virtual {
		time.Sleep(now.Sub(a.at))
	}
	a.at = now
}

// inWorld returns what an instance in a world gets. Nothing is asserted of it.
func (c *ExpectConfig) inWorld(w *replay.World, cluster string) run.Attempt {
	return c.given().Over(run.Clients{
		Cached: w.Client(cluster), Live: w.APIReader(cluster),
		As:        func(manager string) client.WithWatch { return w.As(cluster, manager) },
		Add:       func(obj client.Object) error { return w.Store(cluster).Give(obj) },
		Resources: func() []*metav1.APIResourceList { return w.Store(cluster).Resources() },
	})
}
