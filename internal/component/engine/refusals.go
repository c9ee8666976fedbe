package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

// refusal is what is remembered of a type whose fence was refused or had no effect. It holds for a definition that
// nobody has changed. Until it is due, nothing is asked about the type: neither its fence nor, if the component is
// being deleted, any other fence is put up.
type refusal struct {
	uid        types.UID
	generation int64
	reason     string
	// tries is how often in a row the fence failed.
	tries int
	due   time.Time
	// passed reports whether a dry run did not fail any more. The type is then removed as any other; tries still counts
	// if the fence fails all the same.
	passed bool
}

// A fence that failed is tried again after a minute, then after twice as long each time.
const (
	firstRetry   = time.Minute
	longestRetry = 10 * time.Minute
)

func retryDelay(tries int) time.Duration {
	delay := firstRetry
	for i := 1; i < tries && delay < longestRetry; i++ {
		delay *= 2
	}
	return min(delay, longestRetry)
}

// RetryFences has the fences that failed tried again with the next run, as when somebody asks for it.
func (m *Memory) RetryFences() {
	for key, refusal := range m.refusals {
		refusal.due = time.Time{}
		m.refusals[key] = refusal
	}
}

// recallRefusals forgets what does not hold any more, tries the fences again that are due, and adds the refusals that
// hold to the input of the plan. A fence is tried with a dry run, which is two requests. For the deletion of a
// component one refusal is enough, so no other is tried then.
func (r *run) recallRefusals(ctx context.Context) {
	remembered := r.Memory.refusals
	for key, refusal := range remembered {
		seen := r.in.Observed[key]
		_, desired := r.objects[key]
		if desired || seen.UID != refusal.uid || seen.Generation != refusal.generation {
			delete(remembered, key)
		}
	}
	held := false
	for _, key := range slices.SortedFunc(maps.Keys(remembered), compareKeys) {
		refusal := remembered[key]
		switch due := !refusal.due.After(r.task.Now); {
		case refusal.passed, due && (r.task.DryRun || held && r.task.Deleting):
			continue
		case due:
			outcome := r.Guard.Fence(ctx, []plan.Key{key}, true)[0]
			if outcome.Err != nil || !outcome.Use.Unfenced {
				refusal.passed = outcome.Err == nil
				remembered[key] = refusal
				continue
			}
			r.rememberRefusal(key, outcome.Use)
		}
		held = true
		r.in.Uses[key] = plan.Use{State: plan.ForeignUnknown, Reason: remembered[key].reason, Unfenced: true}
	}
}

// rememberRefusal remembers that the fence of a type failed.
func (r *run) rememberRefusal(key plan.Key, use plan.Use) {
	if r.Memory.refusals == nil {
		r.Memory.refusals = map[plan.Key]refusal{}
	}
	seen := r.in.Observed[key]
	tries := r.Memory.refusals[key].tries + 1
	r.Memory.refusals[key] = refusal{
		uid: seen.UID, generation: seen.Generation, reason: use.Reason,
		tries: tries, due: r.task.Now.Add(retryDelay(tries)),
	}
}

// retryAt is when to come back if fences that failed are all that blocks; else zero.
func (r *run) retryAt() time.Time {
	var first time.Time
	for i := range r.report.Plan.Obstacles {
		obstacle := &r.report.Plan.Obstacles[i]
		if obstacle.Kind != plan.ObstacleBlocked {
			continue
		}
		if !r.in.Uses[obstacle.Key].Unfenced {
			return time.Time{}
		}
		due := r.Memory.refusals[obstacle.Key].due
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

func compareKeys(a, b plan.Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}
