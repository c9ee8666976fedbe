package shards_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// flaw is what is wrong with a shard, or with the tree of its operator.
type flaw string

const (
	flawless flaw = ""
	// unguarded is a shard whose transport lets each write through.
	unguarded flaw = "each write is sent"
	// lingering is a process in which something writes until it ends, past the transport of the shard.
	lingering flaw = "something writes after the Lease was released"
	// filtered is a shard that asks the API server for its own children alone, which is what its cache shows.
	filtered flaw = "no more is asked for than the cache shows"
	// keeping is a shard that does not give Widgets back.
	keeping flaw = "Widgets are not given back"
	// hasty is a tree that takes the finalizer of the parts off without deleting them.
	hasty flaw = "parts are left to the garbage collector"
	// forgetful is a tree that leaves registrations in the registry.
	forgetful flaw = "registrations are left"
	// absent is a tree that lists nothing in the registry.
	absent flaw = "nothing is registered"
	// unordered is a tree whose nodes clean up in order. So the registration is the first to go.
	unordered flaw = "registrations go first"
	// dropping is a tree that does not desire the last part of a Widget with a changed color.
	dropping flaw = "a part is dropped"
	// hoarding is a tree that desires more parts than a Widget has.
	hoarding flaw = "parts are kept"
)

// begin does to a process what the flaw does before the process joins.
func (f flaw) begin(ctx context.Context, config *rest.Config) {
	if f == lingering {
		go linger(ctx, kubernetes.NewForConfigOrDie(rest.CopyConfig(config)))
	}
}

// join does to a process what the flaw does after the process has joined.
func (f flaw) join(config *rest.Config) {
	if f == unguarded {
		config.WrapTransport = nil
	}
}

// config returns the config of the operator with the flaw.
func (f flaw) config(config reconcilers.Config, joined *sharding.Shard) reconcilers.Config {
	switch f {
	case filtered:
		config.APIReader = onlyOwn{config.APIReader, shard.Selector(joined)}
	case keeping:
		config.Client = &keeper{config.Client}
	}
	return config
}

// register is the function of the tree.
func (f flaw) register(ctx context.Context, w *resources.Widget) error {
	if f == absent {
		return nil
	}
	return register(ctx, w)
}

// unregister is the function of the tree.
func (f flaw) unregister(ctx context.Context, w *resources.Widget) error {
	if f == forgetful {
		return nil
	}
	return unregister(ctx, w)
}

// parts is the function of the tree.
func (f flaw) parts(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
	all, err := parts(ctx, w)
	switch {
	case f == dropping && w.Generation > 1 && len(all) > 0:
		return all[:len(all)-1], err
	case f == hoarding:
		more := w.DeepCopy()
		more.Spec.Fields[partsField] = "4"
		return parts(ctx, more)
	}
	return all, err
}

// linger writes from the end of a process on until a request fails, which each does when the process has ended.
func linger(ctx context.Context, c *kubernetes.Clientset) {
	<-ctx.Done()
	for {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "lingering-"}}
		_, err := c.CoreV1().ConfigMaps("default").Create(context.Background(), made, metav1.CreateOptions{})
		if err != nil {
			return
		}
	}
}

// onlyOwn lists the objects of a shard alone.
type onlyOwn struct {
	client.Reader
	selector labels.Selector
}

// List implements [client.Reader].
func (r onlyOwn) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(options, client.MatchingLabelsSelector{Selector: r.selector})...)
}

// keeper sends no patch that gives a Widget back.
type keeper struct{ client.Client }

// Patch implements [client.Writer].
func (k *keeper) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, ok := obj.(*resources.Widget); ok && obj.GetLabels()[sharder.ShardLabel(firstRing)] == "" {
		return nil
	}
	return k.Client.Patch(ctx, obj, patch, options...)
}

// hurry does not run a node on deletion.
type hurry struct {
	reconcilers.SubReconciler[*resources.Widget]
}

// Reconcile implements [reconcilers.SubReconciler].
func (h hurry) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	if w.DeletionTimestamp != nil {
		return reconcilers.Result{}, nil
	}
	return h.SubReconciler.Reconcile(ctx, w)
}

// seen are the names of laws that did not hold.
type seen struct {
	mu    sync.Mutex
	names []string
}

var broken simulation.External[seen]

// has reports whether a law did not hold.
func (s *seen) has(law string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.names, law)
}

// noted returns a law that takes down when it does not hold, and lets the story go on.
func noted(law simulation.Invariant) simulation.Invariant {
	check := law.Check
	law.Check = func(w simulation.Write, state simulation.State) error {
		if check(w, state) != nil {
			s := broken.In(context.Background())
			s.mu.Lock()
			defer s.mu.Unlock()
			s.names = append(s.names, law.Name)
		}
		return nil
	}
	return law
}

// try is a try to break a law by a flaw.
type try struct {
	lacks  flaw
	script func(s *story)
	breaks string
}

// tries are those for all laws.
var tries = []try{
	{unguarded, (*story).standStill, leaseLaw},
	{lingering, (*story).joinAndLeave, leaseLaw},
	{filtered, (*story).joinAndLeave, creationLaw},
	{hasty, (*story).deleteAsTheyMove, finalizerLaw},
	{forgetful, (*story).deleteAsTheyMove, finalizerLaw},
	{unordered, (*story).deleteAsTheyMove, registrationLaw},
	{dropping, (*story).joinAndLeave, deletionLaw},
	{keeping, (*story).joinAndLeave, reconciledLaw},
	{forgetful, (*story).deleteAsTheyMove, reconciledLaw},
	{absent, (*story).joinAndLeave, reconciledLaw},
	{hoarding, (*story).joinAndLeave, reconciledLaw},
}

// The laws can be broken: a shard or a tree with a flaw breaks them, for some seed.
func TestFlaws(t *testing.T) {
	for _, try := range tries {
		t.Run(string(try.lacks)+"/"+try.breaks, func(t *testing.T) {
			t.Parallel()
			const seeds = 16
			for seed := range uint64(seeds) {
				options := slow(seed)
				options.Prepare = prepare(try.lacks)
				for i, law := range options.Always {
					options.Always[i] = noted(law)
				}
				found := false
				simulation.Run(t, options, func(w *simulation.World) {
					s := begin(w, seed)
					try.script(s)
					if try.breaks == reconciledLaw {
						s.Rest()
						found = s.unreconciled() != ""
					} else {
						found = broken.Of(w).has(try.breaks)
					}
				})
				if found || t.Failed() {
					t.Logf("seed %d breaks it", seed)
					return
				}
			}
			t.Errorf("%q holds for %d seeds, want that one breaks it", try.breaks, seeds)
		})
	}
}

// Each law that holds at each write has a flaw that breaks it, but for one that package simulation tests.
func TestEachLawHasAFlaw(t *testing.T) {
	t.Parallel()
	for _, law := range laws() {
		breaks := slices.ContainsFunc(tries, func(t try) bool { return t.breaks == law.Name })
		if !breaks && law.Name != simulation.NothingForeign(nil).Name {
			t.Errorf("no flaw breaks %q", law.Name)
		}
	}
}
