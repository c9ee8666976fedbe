package testing

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/replay"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// replayed is a row that has passed and is replayed with faults.
type replayed struct {
	faithfulFields
	// row is a pointer to the case as it is in the table, before Prepare.
	row    any
	name   string
	origin *origin
	// not says why the row is not replayed; empty if it is.
	not string
	now time.Time
	// expect is the config of the row, and additional are its AdditionalConfigs by name, as Prepare left them.
	expect     *ExpectConfig
	additional map[string]*ExpectConfig
	request    reconcilers.Request
	// ofNode says that the row is one of a node, which always has its resource; prepares, that it has a Prepare.
	ofNode, prepares bool
	// begin begins a run.
	begin func(ctx context.Context) (*attempt, error)

	mu      sync.Mutex
	current *attempt
}

// attempt is one run of a row: its Prepare was called.
type attempt struct {
	ctx context.Context
	// start calls the factory. It is called again after each death.
	start func(c reconcilers.Config) (reconcile.Reconciler, error)
	// end calls the CleanUp.
	end func() error
}

// replaysOf returns the replays of a case. Given is the case as it is in the table, and prepared as Prepare left it.
// Start calls the factory for a case.
func replaysOf[Case any, P testCase[Case]](
	t *testing.T, given, prepared P, expect *ExpectConfig,
	contexts func(context.Context) context.Context,
	start func(tc *Case, c reconcilers.Config) (reconcile.Reconciler, error),
) *replayed {
	f := prepared.fields()
	r := &replayed{
		faithfulFields: f.faithful, row: given, name: *f.name, origin: *f.origin, now: *f.now, expect: expect,
		additional: additionalConfigs(f.additional, expect.Scheme, *f.differ),
		prepares:   f.prepare != nil,
	}
	expect.faithful = true
	for _, c := range r.additional {
		c.faithful, c.reconciled = true, -1
	}
	r.not = r.cannot()
	r.begin = func(ctx context.Context) (*attempt, error) {
		tc := new(Case)
		*tc = *given
		copied := P(tc).fields()
		*copied.metadata = maps.Clone(*copied.metadata)
		if *copied.metadata == nil {
			*copied.metadata = map[string]any{}
		}
		*copied.now = *f.now
		ctx, err := prepare(t, contexts(ctx), P(tc))
		if err != nil {
			return nil, err
		}
		a := &attempt{ctx: ctx, end: func() error { return nil }}
		a.start = func(c reconcilers.Config) (reconcile.Reconciler, error) { return start(tc, c) }
		if cleanUp := P(tc).fields().cleanUp; cleanUp != nil {
			a.end = func() error { return cleanUp(t, ctx, tc) }
		}
		return a, nil
	}
	return r
}

// cannot says why a row cannot be replayed, empty if it can.
func (r *replayed) cannot() string {
	configs := []*ExpectConfig{r.expect}
	for _, c := range r.additional {
		configs = append(configs, c)
	}
	has := func(is func(*ExpectConfig) bool) bool { return slices.ContainsFunc(configs, is) }
	switch {
	case r.replays.not != "":
		return r.replays.not
	case has(func(c *ExpectConfig) bool { return len(c.WithReactors) > 0 }):
		return "it has reactors"
	case has(func(c *ExpectConfig) bool { return c.Server != nil }):
		return "it has a Server"
	case has(func(c *ExpectConfig) bool { return c.WithClientBuilder != nil }):
		return "it has a WithClientBuilder"
	default:
		return ""
	}
}

// run replays the row, and fails the test if a replay ends in another way than the row.
func (r *replayed) run(t *testing.T) {
	t.Helper()
	defer failOnPanic(t)
	switch {
	case faultFlag == faultsOff && r.fault.isZero():
		return
	case r.not != "" && !r.fault.isZero():
		t.Fatalf("the Fault cannot be replayed: %s", r.not)
	case r.not != "":
		t.Logf("not replayed: %s", r.not)
		return
	}
	ctx := logr.NewContext(context.Background(), logr.Discard())
	if deadline, ok := deadlineOf(t); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	defer r.endRun(t)
	program, err := r.program(t, *r.expect)
	if err != nil {
		t.Fatalf("the row cannot be replayed: %s", err)
	}
	options := r.replays.options(faultFlag, testing.Short())
	if !r.fault.isZero() {
		r.runPinned(t, ctx, program, options)
		return
	}
	began := time.Now()
	report, err := replay.Explore(ctx, program, options)
	switch {
	case err != nil:
		t.Errorf("the replays ended: %s", err)
	case report.NotReplayed != "":
		t.Logf("not replayed: %s", report.NotReplayed)
	default:
		t.Logf("replayed with %s in %.2f s", count(report.Replays, "fault"), time.Since(began).Seconds())
		r.fail(t, ctx, report.Findings, options)
	}
}

// runPinned replays the row with its Fault.
func (r *replayed) runPinned(t *testing.T, ctx context.Context, program replay.Program, options replay.Options) {
	t.Helper()
	finding, err := replay.Run(ctx, program, r.fault.faults, options)
	switch {
	case err != nil:
		t.Errorf("the row cannot be replayed with %s: %s", r.fault, err)
	case finding == nil:
		t.Logf("replayed with %s: it ends as without", r.fault)
	default:
		r.fail(t, ctx, []replay.Finding{*finding}, options)
	}
}

// program returns what is replayed, with the given objects of a config.
func (r *replayed) program(t *testing.T, own ExpectConfig) (replay.Program, error) {
	clusters := map[string]replay.Cluster{}
	var problems []string
	add := func(name string, c ExpectConfig) {
		s, hidden, wrong := c.newStore()
		clusters[name] = replay.Cluster{Store: s, Hidden: hidden}
		problems = append(problems, wrong...)
	}
	add("", own)
	for name, c := range r.additional {
		add(name, *c)
	}
	externals := []replay.External{{Reset: func() {}, End: func() any { return nil }}}
	for i, external := range r.externals {
		externals = append(externals[:i], replay.External(external))
	}
	// A run begins when the externals are reset.
	reset := externals[0].Reset
	externals[0].Reset = func() { r.endRun(t); reset() }
	if len(problems) > 0 {
		return replay.Program{}, errors.New(strings.Join(problems, "; "))
	}
	return replay.Program{Clusters: clusters, Now: r.now, Start: r.start, Externals: externals}, nil
}

// endRun calls the CleanUp of a run, if there is one.
func (r *replayed) endRun(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	ended := r.current
	r.current = nil
	r.mu.Unlock()
	if ended == nil {
		return
	}
	if err := ended.end(); err != nil {
		t.Errorf("error during clean up of a replay: %s", err)
	}
}

// start makes an instance of the code in a world.
func (r *replayed) start(ctx context.Context, w *replay.World) (replay.Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		begun, err := r.begin(ctx)
		if err != nil {
			return nil, err
		}
		r.current = begun
	}
	configs := map[string]reconcilers.Config{}
	for name, c := range r.additional {
		configs[name] = c.inWorld(w, name)
	}
	config := r.expect.inWorld(w, "")
	prepared := reconcilers.StashAdditionalConfigs(r.current.ctx, configs)
	reconciler, err := r.current.start(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (reconcile.Result, error) {
		ctx = context.WithValue(ctx, worldKey{}, w)
		return reconciler.Reconcile(merged{Context: ctx, first: ctx, second: prepared}, r.request)
	}, nil
}

// inWorld returns the config of an instance in a world. Nothing is asserted of it.
func (c *ExpectConfig) inWorld(w *replay.World, cluster string) reconcilers.Config {
	in := *c
	journal := &recording.Journal{}
	b := in.onStore(journal, clients{
		cached: w.Client(cluster), live: w.APIReader(cluster),
		as:        func(manager string) client.WithWatch { return w.As(cluster, manager) },
		add:       func(obj client.Object) error { return w.Store(cluster).Give(obj) },
		resources: func() []*metav1.APIResourceList { return w.Store(cluster).Resources() },
	})
	return in.assemble(journal, b).config
}
