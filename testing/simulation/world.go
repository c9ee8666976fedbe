package simulation

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/internal/transport"
	"github.com/espalier-dev/espalier/testing/simulation/internal/journal"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// World is a cluster with an operator, in virtual time: time passes at once while all in the world wait for it. It is
// the user of the story, too, who may do everything. As a [testing.TB], it takes what a story says to the test.
type World struct {
	testingTB
	*Actor

	options  Options
	recorder *recorder
	storage  *storage.Storage
	journal  *journal.Journal
	network  *transport.Network
	hooks    *hooks
	replicas []*replica
	// externals has what is outside of the cluster, by its variable.
	externals sync.Map
	// cluster are the controllers beside the API server, and kinds those that they watch.
	cluster *controllers.Controllers
	kinds   controllers.Kinds
	// begun is what there was before the operator. It is set once.
	begun atomic.Pointer[state.State]
	// aborted is closed when the story has failed and is to end.
	aborted   chan struct{}
	abortOnce sync.Once

	mu sync.Mutex
	// server serves, and serverOptions are those of the next one. changed is when an object changed last, but for those
	// that change at rest, too.
	server        *server.Server
	serverOptions server.Options
	changed       time.Time
	// loops sees that the operator writes an object without end.
	loops loops
	// writes are those of the operator, and others is when somebody wrote who is neither the operator nor the cluster.
	writes writes
	others time.Time
	// early is the resource that the user has deleted before the story does.
	early early
	// restarts are those under way.
	restarts sync.WaitGroup
	// forgetLogs has the libraries' errors not noted any more.
	forgetLogs func()
}

// newWorld starts a cluster and an operator. What it has started is in the world, also if it fails.
func newWorld(options Options, tb *recorder, dog *watchdog) (*World, error) {
	w := &World{testingTB: tb, options: options, recorder: tb, hooks: &hooks{}, aborted: make(chan struct{})}
	w.journal = journal.New(w.written)
	w.storage = storage.New(storage.Options{Written: w.journal.Written})
	w.serverOptions = server.Options{
		Storage: w.storage.Decorator(), Identities: &server.Identities{},
		Definitions: trustedAll(options.Definitions), FixedDefinitions: !options.ChangingDefinitions,
		Webhooks: w.hooks.handler, RBAC: options.Rules != nil,
	}
	w.network = transport.New(transport.Options{
		Plan: options.Plan, Kind: transport.Kinds(options.Scheme), Restart: func() { w.restarts.Go(w.restart) },
		Unlogged: seen, Lost: w.lost, UserDeletes: w.userDeletes,
	})
	w.forgetLogs = bubbles.add(w)
	tb.noteFailure(w.network.Note)
	err := w.serve()
	if err != nil {
		return w, err
	}
	dog.network.Store(w.network)
	w.Actor, err = w.actor(user)
	if err != nil {
		return w, err
	}
	if err := w.startCluster(); err != nil {
		return w, fmt.Errorf("start the controllers of the cluster: %w", err)
	}
	for _, obj := range options.Objects {
		if err := w.Client.Create(context.Background(), trusted(obj)); err != nil {
			return w, fmt.Errorf("options: Objects: %s: %w", w.describe(obj), err)
		}
	}
	if options.Rules != nil {
		if err := w.authorize(context.Background()); err != nil {
			return w, err
		}
	}
	begun := w.journal.State()
	w.begun.Store(&begun)
	for i := range max(options.Replicas, 1) {
		r := &replica{world: w, options: options, name: actor(i), network: w.network, hooks: w.hooks}
		w.replicas = append(w.replicas, r)
		r.start()
	}
	settle()
	return w, nil
}

// startCluster starts the controllers of the cluster, which watch the kinds of which there are objects.
func (w *World) startCluster() error {
	started, err := controllers.Start(context.Background(), w.Config(cluster), controllers.Options{
		Behavior: w.options.behavior(), Failed: w.clusterFailed, Authority: authority, Present: &w.kinds,
	})
	if err != nil {
		return err
	}
	w.cluster = started
	return nil
}

// clusterFailed notes that a controller of the cluster tries something again.
func (w *World) clusterFailed(err error) {
	if !passes(err) {
		w.network.Note(cluster + problem + err.Error())
	}
}

// serve starts an API server on the storage.
func (w *World) serve() error {
	s, err := server.Start(context.Background(), w.serverOptions)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.server = s
	w.mu.Unlock()
	w.network.Serve(server.RoundTripper(journal.Handler(s.Handler(), transport.Actor)))
	return nil
}

// restart takes the place of the API server by another one.
func (w *World) restart() {
	w.mu.Lock()
	s := w.server
	w.server = nil
	w.mu.Unlock()
	if s == nil {
		return // another restart is under way
	}
	s.Stop()
	if err := w.serve(); err != nil {
		w.Errorf("the API server does not start again: %v", err)
	}
}

// end ends all that the world has started.
func (w *World) end() {
	w.mu.Lock()
	w.early.struck = true // nobody deletes anything any more
	w.mu.Unlock()
	for _, r := range w.replicas {
		r.end()
	}
	if w.cluster != nil {
		w.cluster.Stop()
	}
	w.restarts.Wait()
	if w.server != nil {
		w.server.Stop()
	}
	w.storage.Close()
	time.Sleep(leftovers)
	w.forgetLogs()
}

// lost fails the story: a request of the operator undid what somebody else had written just before it.
func (w *World) lost(e transport.Entry) {
	if w.options.isOperator(e.Call.Actor) {
		const text = "%s lost what somebody else wrote: somebody put an annotation on the object just before %s %s, " +
			"which took it off without having seen it; write with a resourceVersion, or change only what is yours, " +
			"by a patch or an apply"
		w.abort(fmt.Sprintf(text, e.Call.Actor, e.Call.Verb, e.Object()))
	}
}

// Config returns a configuration for clients of an actor, whose requests are in the log under that name. The plan may
// strike them, as those of all actors.
func (w *World) Config(actor string) *rest.Config { return w.network.Client(actor).Config(server.Host) }

// As returns an actor of a name.
func (w *World) As(name string) *Actor {
	w.Helper()
	a, err := w.actor(name)
	if err != nil {
		w.Fatalf("a client for %s: %v", name, err)
	}
	return a
}

func (w *World) actor(name string) (*Actor, error) {
	c, err := client.New(w.Config(name), client.Options{Scheme: w.options.Scheme})
	return &Actor{Client: c, world: w, name: name}, err
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) {
	w.Helper()
	w.network.Note(fmt.Sprintf("%v pass", d))
	w.sleep(d)
}

const (
	// quiet is how long nothing changes in a cluster at rest: longer than the longest pause between two attempts of a
	// controller, which is 1,000 seconds.
	quiet = 20 * time.Minute
	// patience is how long a cluster may take to come to rest.
	patience = 24 * time.Hour
)

// Rest waits until nothing has changed in the cluster and nothing has gone wrong for 20 minutes, which is longer than
// controllers wait before they try again. Leases and events do not count. The story fails if there is no rest within a
// day.
func (w *World) Rest() {
	w.Helper()
	begin := time.Now()
	mark := w.network.Mark()
	for {
		since := time.Since(w.disturbed(begin))
		if since >= quiet {
			w.network.Note("rest")
			return
		}
		if time.Since(begin) >= patience {
			w.recorder.fail(w.recorder.place(), fmt.Sprintf("the cluster does not come to rest within %v; requests in "+
				"this time:\n%s", patience, w.network.Since(mark)))
			runtime.Goexit()
		}
		w.sleep(quiet - since)
	}
}

// disturbed returns when something changed last, or went wrong, but not a time before a given one. It may be in the
// future, if the API server is down until then.
func (w *World) disturbed(begin time.Time) time.Time {
	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()
	return slices.MaxFunc([]time.Time{begin, changed, w.network.Trouble()}, time.Time.Compare)
}

// Until waits until something holds, which is asked each second. The story fails if it does not within an hour; what
// names it.
func (w *World) Until(what string, holds func() bool) {
	w.Helper()
	const limit = time.Hour
	for begin := time.Now(); !holds(); w.sleep(time.Second) {
		if time.Since(begin) >= limit {
			if w.recorder.isMuted() {
				return
			}
			w.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// Idle lets time pass, in which the operator makes no request. Watches that end by themselves, and begin again, do not
// count, nor do leases of leader election. Faults are held back meanwhile.
func (w *World) Idle(d time.Duration) {
	w.Helper()
	for _, made := range w.idle(d) {
		w.Errorf("%s", made)
	}
}

// idle lets time pass, and returns what the operator does meanwhile, for each replica that does something.
func (w *World) idle(d time.Duration) (busy []string) {
	w.Helper()
	w.network.Note(fmt.Sprintf("%v idle", d))
	w.network.Calm(true)
	defer w.network.Calm(false)
	mark, begun := w.network.Mark(), w.network.Now()
	w.sleep(d)
	made := w.network.Since(mark)
	for _, name := range w.options.actors() {
		for counted := range made {
			if counted.Actor == name && (counted.Verb == fault.Watch || counted.Kind == "Lease") {
				delete(made, counted)
			}
		}
		if made.Of(name) > 0 {
			const text = "%s made requests in %v in which nothing happened:\n%s"
			busy = append(busy, fmt.Sprintf(text, name, d, made.Only(name))+w.errorsSince(begun))
		}
	}
	return busy
}

// errorsSince returns what was logged as errors, each text once, for the end of a message.
func (w *World) errorsSince(begun time.Duration) string {
	var texts []string
	for _, e := range w.network.Log().Entries {
		if e.At >= begun && strings.Contains(e.Note, problem) && !slices.Contains(texts, e.Note) &&
			len(texts) < maxErrors {
			texts = append(texts, e.Note)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "\nMeanwhile it was logged:\n\t" + strings.Join(texts, "\n\t")
}

// maxErrors is how many different errors a message has.
const maxErrors = 3

// Kill ends processes of the operator at once, as if their machines failed. Others begin after a second. The replicas
// are named, such as [Operator] or "operator-2"; without names it is all of them.
func (w *World) Kill(replicas ...string) {
	w.Helper()
	w.network.Note(strings.Join(append([]string{"kill"}, replicas...), " "))
	for _, r := range w.named(replicas) {
		r.kill()
	}
	settle()
}

// Stop ends replicas of the operator until Start is called. What their processes had not sent has no effect.
func (w *World) Stop(replicas ...string) {
	w.Helper()
	for _, r := range w.named(replicas) {
		r.end()
	}
	settle()
}

// Terminate asks replicas of the operator to end, as a kubelet does, and waits until their managers have. They do not
// run until Start is called.
func (w *World) Terminate(replicas ...string) {
	w.Helper()
	w.network.Note(strings.Join(append([]string{"terminate"}, replicas...), " "))
	for _, r := range w.named(replicas) {
		r.terminate()
	}
	settle()
}

// Start starts replicas of the operator after Stop or Terminate.
func (w *World) Start(replicas ...string) {
	w.Helper()
	for _, r := range w.named(replicas) {
		r.start()
	}
	settle()
}

// Freeze has replicas of the operator stand still until Resume is called: they send nothing, and no answer and no event
// reaches them. Requests that they have sent arrive. Their time goes on, but they do not give up requests, and notice
// only afterwards that they have taken too long.
func (w *World) Freeze(replicas ...string) { w.hold("freeze", true, replicas) }

// Partition cuts replicas of the operator off the API server until Resume is called. Requests under way are lost, and
// answers and events arrive then.
func (w *World) Partition(replicas ...string) { w.hold("partition", false, replicas) }

func (w *World) hold(what string, frozen bool, replicas []string) {
	w.Helper()
	w.network.Note(strings.Join(append([]string{what}, replicas...), " "))
	for _, r := range w.named(replicas) {
		w.network.Hold(frozen, r.name)
	}
	settle()
}

// Resume ends what Freeze or Partition began.
func (w *World) Resume(replicas ...string) {
	w.Helper()
	w.network.Note(strings.Join(append([]string{"resume"}, replicas...), " "))
	for _, r := range w.named(replicas) {
		w.network.Lift(r.name)
	}
	settle()
}

// named returns the replicas of the names, or all without names.
func (w *World) named(names []string) []*replica {
	w.Helper()
	if len(names) == 0 {
		return w.replicas
	}
	var named []*replica
	for _, name := range names {
		i := slices.Index(w.options.actors(), name)
		if i < 0 {
			w.Fatalf("there is no replica %q", name)
		}
		named = append(named, w.replicas[i])
	}
	return named
}

// settle waits until all in the bubble wait for time to pass. The time that it takes shows nowhere.
func settle() { time.Sleep(time.Nanosecond) }

// RestartServer restarts the API server, which answers nobody for a time, and for at least three seconds.
func (w *World) RestartServer(down time.Duration) {
	w.network.Note("the API server restarts")
	w.network.Restart(down)
}

// Happened returns the faults that have struck up to now, each as a fault of one call.
func (w *World) Happened() []Fault { return w.network.Happened() }
