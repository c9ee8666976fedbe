package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Outcome is how a run ended. The zero value means that the component is ready, or gone.
type Outcome int

const (
	// Reached means that the component is ready, or gone.
	Reached Outcome = iota
	// Failed means that something failed that no retry mends.
	Failed
	// NotReady means that the time was over, or that nothing was to be waited for.
	NotReady
	// Blocked means that somebody else has to act first: the owner of an object, or who uses what is to be deleted.
	Blocked
	// Interrupted means that the context has ended.
	Interrupted
)

// Run is one run of the engine, again and again, until a component is as it should be.
type Run struct {
	Cluster *Cluster
	// Generate makes the objects. It is not called for a release that is being deleted.
	Generate generator.GeneratorFunc
	// Kept are the objects of the inventory that stay as they are. None of them is generated.
	Kept Kept
	// Policies are those of objects that say nothing else.
	Policies generator.PolicySpec
	// Deletes says that the release is being deleted. Otherwise it is an error if it is.
	Deletes bool
	// Wait waits until the component is ready or gone. Otherwise the run ends where it would have to wait.
	Wait bool
	// Show is called after each pass. Optional.
	Show func(component.Progress)
}

// node is the root for a release.
func (r *Run) node(release *Release, observer *recorder) *reconcilers.ResourceReconciler[*Release] {
	config := r.Cluster.keeping(r.Kept).config()
	if observer != nil {
		config = config.WithObserver(observer)
	}
	return component.NewComponentRoot(Prefix, generator.Generator(r.Generate), component.Options[*Release]{
		Config: config, Policies: r.Policies, FieldManager: release.Spec.FieldManager, Finalizer: Finalizer,
	})
}

// Until runs the engine until the component is as it should be, or cannot become that. The error says why it is not,
// in one line. It is nil for [Reached] alone. When the context ends, what was begun is done by the next run.
func (r *Run) Until(ctx context.Context, release *Release) (Outcome, error) {
	seen := &recorder{}
	root := r.node(release, seen)
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(release)}
	var last pass
	for tries := 0; ; tries++ {
		seen.forget()
		result, err := root.Reconcile(ctx, request)
		if ctx.Err() != nil {
			return r.interrupted(ctx, last)
		}
		now := pass{err: err, progress: seen.progress(), again: result.RequeueAfter, known: last.known}
		if now.progress.Message != "" {
			now.known = now.progress.Message
		}
		gone, getErr := r.isGone(ctx, request, now)
		switch {
		case ctx.Err() != nil:
			return r.interrupted(ctx, last)
		case gone:
			return outcomeOf(getErr)
		case getErr != nil:
			now.err = getErr
		}
		if r.Show != nil && now.progress.State != "" {
			r.Show(now.progress)
		}
		if outcome, ends, err := now.decide(last, r.Wait); ends {
			return outcome, err
		}
		last = now
		select {
		case <-ctx.Done():
			return r.interrupted(ctx, now)
		case <-time.After(now.delay(tries)):
		}
	}
}

func outcomeOf(err error) (Outcome, error) {
	if err != nil {
		return Failed, err
	}
	return Reached, nil
}

// isGone reports whether a release is gone after a pass that found out nothing about it.
func (r *Run) isGone(ctx context.Context, request reconcilers.Request, now pass) (bool, error) {
	if now.err != nil || now.progress.State != "" {
		return false, nil
	}
	err := r.Cluster.Get(ctx, request.NamespacedName, &Release{})
	if apierrs.IsNotFound(err) && !r.Deletes {
		return true, errDeleted
	}
	return apierrs.IsNotFound(err), client.IgnoreNotFound(err)
}

var errDeleted = errors.New("somebody else has deleted it meanwhile")

// ErrTimeout is the cause of a context whose time is over.
var ErrTimeout = errors.New("the time is over")

func (r *Run) interrupted(ctx context.Context, last pass) (Outcome, error) {
	message := cmp.Or(last.known, last.message())
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errLeaseLost):
		return Failed, cause
	case !errors.Is(cause, ErrTimeout):
		return Interrupted, fmt.Errorf("%w: the same command goes on from there; %s", cause, message)
	}
	return NotReady, fmt.Errorf("%w: %s", ErrTimeout, message)
}

// pass is what one pass of the engine found out.
type pass struct {
	err      error
	progress component.Progress
	again    time.Duration
	// known is what the last pass said that found something out.
	known string
}

// message says what is in the way.
func (p *pass) message() string {
	switch {
	case p.progress.Message != "":
		return p.progress.Message
	case p.err != nil:
		return strings.Join(strings.Fields(p.err.Error()), " ")
	}
	return "nothing is known yet"
}

// decide reports whether a run ends after this pass, and how. It ends when somebody else has to act, and nothing else
// is left to wait for.
func (p *pass) decide(last pass, wait bool) (outcome Outcome, ends bool, err error) {
	if p.progress.State == apis.ComponentReady && p.err == nil {
		return Reached, true, nil
	}
	if p.err != nil {
		switch reconcilers.Classify(p.err) {
		case reconcilers.ClassTerminal, reconcilers.ClassForbidden:
			return Failed, true, errors.New(p.message())
		}
		return 0, false, nil
	}
	if len(p.progress.Next) > 0 || p.progress.State == "" {
		return 0, false, nil
	}
	kinds := map[string]bool{}
	for i := range p.progress.Obstacles {
		kinds[p.progress.Obstacles[i].Kind] = true
	}
	settled := p.again >= 100*time.Millisecond && p.message() == last.message()
	switch {
	case kinds["waiting"] || kinds["contested"] || !settled:
		// An object that has failed may be one that the component does without.
	case kinds["failed"]:
		return Failed, true, errors.New(p.message())
	case kinds["not ours"], kinds["blocked"]:
		return Blocked, true, errors.New(p.message())
	}
	if !wait && settled {
		return NotReady, true, errors.New(p.message())
	}
	return 0, false, nil
}

// delay is how long to wait for the next pass.
func (p *pass) delay(tries int) time.Duration {
	switch {
	case p.err != nil:
		return min(100*time.Millisecond<<min(tries, 6), 5*time.Second)
	case p.again == 0:
		return 200 * time.Millisecond
	}
	return min(p.again, 2*time.Second)
}

// recorder keeps what the engine says about the component.
type recorder struct {
	mu   sync.Mutex
	last component.Progress
}

func (r *recorder) Start(ctx context.Context, _ *reconcilers.Node) context.Context { return ctx }

func (r *recorder) End(context.Context, *reconcilers.Node, reconcilers.Outcome) {}

// Note keeps the progress. The records are valid until it returns.
func (r *recorder) Note(_ context.Context, _ *reconcilers.Node, fact any) {
	progress, ok := fact.(component.Progress)
	if !ok {
		return
	}
	progress.Inventory = slices.Clone(progress.Inventory)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = progress
}

func (r *recorder) progress() component.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = component.Progress{}
}
