package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/write"
	rtime "github.com/espalier-dev/espalier/time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// goal is how far the protocol is followed.
type goal int

const (
	goalCheck goal = iota
	// goalDryRun finds out whether the fences would be refused.
	goalDryRun
	goalFence
	goalDelete
)

// workers is how many types are worked on at the same time.
const workers = 16

// protocol follows the protocol for several types at once: each step for all of them, then the next step. So all of
// them share one margin.
type protocol struct {
	*Guard
	goal    goal
	targets []*target
}

// target is one type on its way through the protocol.
type target struct {
	Target
	// d is the definition as it was read or written last; nil if there is none.
	d *definition
	// done reports whether the steps that are left do not concern the type, and over whether its outcome is final.
	done, over bool
	// proven reports whether the definition records a proof that holds, and unguarded whether it says that foreign
	// instances do not matter.
	proven, unguarded bool
	// fencedAt is when the fence was put up; zero if it was there before.
	fencedAt time.Time
	// marginOver is when the margin of a proven fence is over; zero if it has none.
	marginOver time.Time
	use        plan.Use
	err        error
}

var none = plan.Use{State: plan.ForeignNone}

// end sets the outcome, which a new attempt can change.
func (t *target) end(use plan.Use, err error) { t.use, t.err, t.done = use, err, true }

// stale reports whether another writer has changed the definition meanwhile, or it seems to be gone.
func (t *target) stale() bool {
	unknown, _ := errors.AsType[*unknownError](t.err)
	return apierrors.IsConflict(t.err) || unknown != nil && unknown.unserved
}

// refused reports whether the type may not be deleted now.
func (t *target) refused() bool { return t.err != nil && !t.stale() || t.use.State > plan.ForeignNone }

func (g *Guard) follow(ctx context.Context, goal goal, targets ...Target) []Outcome {
	p := &protocol{Guard: g, goal: goal}
	for _, one := range targets {
		t := &target{Target: one}
		p.targets = append(p.targets, t)
	}
	for try := 1; ; try++ {
		p.attempt(ctx)
		if !p.again(try) {
			break
		}
	}
	p.liftRefused(ctx)
	outcomes := make([]Outcome, len(targets))
	for i, t := range p.targets {
		outcomes[i].Use, outcomes[i].Err = unknownUse(t.use, t.err)
		if t.d != nil {
			outcomes[i].Object = t.d.written
		}
	}
	return outcomes
}

// attempt takes each step for all types that it concerns.
func (p *protocol) attempt(ctx context.Context) {
	p.each(ctx, p.read)
	if p.goal == goalCheck || p.goal == goalDelete {
		p.each(ctx, p.look)
	}
	switch p.goal {
	case goalCheck:
		return
	case goalDryRun:
		p.each(ctx, p.tryFence)
		return
	}
	p.each(ctx, p.putUpFence)
	p.each(ctx, p.proveFence)
	p.each(ctx, p.awaitMargin)
	p.each(ctx, p.confirm)
	if p.goal == goalDelete {
		p.each(ctx, p.remove)
	}
}

// each takes a step for all types that it concerns, several at a time. Fences are put up for all types or none, so one
// that is refused ends the steps of all.
func (p *protocol) each(ctx context.Context, step func(ctx context.Context, t *target)) {
	if p.abandoned() {
		return
	}
	// Each step reports the error of a context that is done, so none is left out.
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), workers, len(p.targets), func(i int) {
		if t := p.targets[i]; !t.over && !t.done && t.err == nil {
			step(ctx, t)
		}
	})
}

func (p *protocol) abandoned() bool {
	if p.goal != goalFence {
		return false
	}
	for _, t := range p.targets {
		if t.refused() {
			return true
		}
	}
	return false
}

// again prepares another attempt for the types that need one, and reports whether there are any.
func (p *protocol) again(try int) bool {
	again := false
	abandoned := p.abandoned()
	for _, t := range p.targets {
		switch {
		case t.over:
		case t.stale() && try < attempts && !abandoned:
			p.forget(t.Key.Name)
			t.use, t.err, t.done, t.d = plan.Use{}, nil, false, nil
			again = true
		default:
			t.over = true
			if apierrors.IsConflict(t.err) {
				t.err = fmt.Errorf("%s keeps changing: %w", t.Key, t.err)
			}
		}
	}
	return again
}

// liftRefused lifts the fences of the types that may not be deleted, and records why a fence could not be proven.
func (p *protocol) liftRefused(ctx context.Context) {
	if p.goal == goalDryRun {
		return
	}
	abandoned := p.abandoned()
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), workers, len(p.targets), func(i int) {
		t := p.targets[i]
		unknown, isUnknown := errors.AsType[*unknownError](t.err)
		blocked := t.err == nil && (abandoned || t.use.State > plan.ForeignNone)
		if t.d == nil || !isUnknown && !blocked {
			return
		}
		obstacle := ""
		if isUnknown {
			obstacle = unknown.obstacle
		}
		d, err := p.lift(ctx, t.d, obstacle)
		if d != nil {
			t.d = d
		}
		if err != nil {
			t.use, t.err = plan.Use{}, err
		}
	})
	for _, t := range p.targets {
		if abandoned && t.err == nil && t.use.State <= plan.ForeignNone {
			t.use = none
		}
	}
}

// read reads the definition, unless this request has read it already. The state that was read is not fenced if the
// definition has changed since.
func (p *protocol) read(ctx context.Context, t *target) {
	switch kind := t.Key.GroupKind(); {
	case kind == kinds.Namespace:
		t.use, t.err = p.followNamespace(ctx, t.Key.Name, t.UID, p.goal)
		t.over = true
		return
	case kind != kinds.CustomResourceDefinition:
		t.end(plan.Use{}, errNoTypes(t.Key))
		return
	}
	if p.goal == goalDryRun || p.goal == goalFence {
		t.d = p.known(t.Key.Name)
	}
	if t.d == nil {
		t.d, t.err = p.readDefinition(ctx, t.Key.Name)
	}
	d := t.d
	switch {
	case t.err != nil:
	case d == nil, t.UID != "" && d.UID != t.UID, d.DeletionTimestamp != nil && p.goal == goalDelete:
		t.d = nil
		t.end(none, nil)
	case d.DeletionTimestamp != nil:
		t.end(p.instances(ctx, d))
	case p.ignoresForeign(d) && p.goal != goalDelete:
		t.end(none, nil)
	case p.ignoresForeign(d):
		t.unguarded = true
	default:
		t.marginOver, t.proven = p.proofOf(ctx, d)
		p.awaitMargin(ctx, t)
	}
}

// look finds out whether others have instances.
func (p *protocol) look(ctx context.Context, t *target) {
	if t.unguarded {
		return
	}
	t.use, t.err = p.instances(ctx, t.d)
	t.done = t.use.State != plan.ForeignNone
}

// tryFence finds out whether the fence would be refused, and writes nothing.
func (p *protocol) tryFence(ctx context.Context, t *target) {
	t.use = none
	if t.proven || fenced(t.d, p.rule()) {
		return
	}
	if t.err = p.checkObstacle(ctx, t.d); t.err == nil {
		_, t.err = p.fence(ctx, t.d, client.DryRunAll)
	}
}

func (p *protocol) putUpFence(ctx context.Context, t *target) {
	if t.proven || t.unguarded || fenced(t.d, p.rule()) {
		return
	}
	if t.err = p.checkObstacle(ctx, t.d); t.err != nil {
		return
	}
	t.d, t.err = p.fence(ctx, t.d)
	t.fencedAt = time.Now()
}

// proveFence proves the fence, and records when the margin is over. The margin begins with the answer, and for a new
// type no earlier than the creations are over that the API server delays. An API server that serves a definition only
// after it was fenced has seen the fence.
func (p *protocol) proveFence(ctx context.Context, t *target) {
	if t.proven || t.unguarded || t.d.dormant() {
		return
	}
	var sent time.Time
	if sent, t.err = p.prove(ctx, t.d); t.err != nil {
		return
	}
	delay := t.d.delay(string(p.manager()))
	begin, answered := sent.Add(delay), time.Now()
	// The API server may have been behind until it answered.
	if answered.After(begin) {
		begin = answered
	}
	margin := p.margin()
	if !t.fencedAt.IsZero() && p.Margin >= 0 {
		margin = max(margin, lagFactor*(begin.Sub(t.fencedAt)-delay))
	}
	if left := begin.Add(margin).Sub(answered); left > 0 {
		t.marginOver = present(ctx).Add(left)
	}
	t.d, t.err = p.recordProof(ctx, t.d, t.marginOver)
}

// lagFactor is how much longer the margin is than an API server took to refuse an instance. Another API server, which
// was not met, may take longer.
const lagFactor = 2

// longestMargin is more than any margin that a guard begins.
func (g *Guard) longestMargin() time.Duration {
	return g.margin() + lagFactor*cmp.Or(g.ProofTimeout, defaultProofTimeout) + time.Minute
}

// awaitMargin ends the steps of a type until its margin is over. The next request continues.
func (p *protocol) awaitMargin(ctx context.Context, t *target) {
	if t.marginOver.After(present(ctx)) {
		t.end(plan.Use{State: plan.ForeignFenced, Until: t.marginOver}, nil)
	}
}

// present is the time of the request, and what has passed of it. A time that a test has pinned stands still: no request
// takes that long.
func present(ctx context.Context) time.Time {
	const longest = time.Hour
	now := rtime.RetrieveNow(ctx)
	if passed := time.Since(now); passed > 0 && passed < longest {
		return now.Add(passed)
	}
	return now
}

// confirm looks again, unless this call has looked since the margin was over.
func (p *protocol) confirm(ctx context.Context, t *target) {
	if !t.unguarded && !(t.proven && p.goal == goalDelete) {
		p.look(ctx, t)
	}
}

// remove deletes this very state of the definition, with the fence that it has.
func (p *protocol) remove(ctx context.Context, t *target) {
	t.err = p.delete(ctx, kinds.CustomResourceDefinition, t.Key.Name, write.VersionOf(t.d))
	if t.err == nil {
		p.forget(t.Key.Name)
		t.use = none
	}
}

// delete deletes an object of the given version. It is not an error if the object is gone; a conflict is returned as it
// is.
func (g *Guard) delete(ctx context.Context, kind schema.GroupKind, name string, only write.Version) error {
	err := write.Delete(ctx, g.Client, named(kind, name), only, "")
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("could not delete %s %s: %w", kind.Kind, name, err)
}

// pause waits, or until ctx is done, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err()
}
