package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
)

// The limits of fresh plans. They cost the operator and the API server something.
const (
	// planInterval is how long a resource gets no other plan.
	planInterval = time.Minute
	// maxPlanTime is how long a plan may take.
	maxPlanTime = 30 * time.Second
	// maxPlans is how many plans are kept.
	maxPlans = 20
	// maxPlanChanges is how many changes of a plan are kept.
	maxPlanChanges = 200
)

// planOf names the component that a plan is about.
type planOf struct {
	root      string
	resource  types.NamespacedName
	component string
}

// isOf reports whether the component is one of a resource.
func (o planOf) isOf(root string, resource types.NamespacedName) bool {
	return o.root == root && o.resource == resource
}

// planRecord is a fresh plan. It is never changed.
type planRecord struct {
	of   planOf
	when time.Time
	err  string
	// counts says how much it would do, in one line.
	counts    string
	changes   []changeView
	refs      []reconcilers.ObjectRef
	obstacles []string
	remote    bool
	omitted   int
}

// plans are the fresh plans that viewers have asked for. At most one is made at a time.
type plans struct {
	// secret makes tokens that nobody else can make. Other replicas have others.
	secret [sha256.Size]byte

	mu     sync.Mutex
	making bool
	// began has when the plans of the last minute were begun.
	began map[planOf]time.Time
	// made has the last plans, the oldest first.
	made []*planRecord
}

func newPlans() *plans {
	p := &plans{began: map[planOf]time.Time{}}
	_, _ = rand.Read(p.secret[:]) // never returns an error
	return p
}

// token is what a form has that a viewer got, and no other page knows.
func (p *plans) token(viewer string, of planOf) string {
	mac := hmac.New(sha256.New, p.secret[:])
	for _, part := range []string{viewer, of.root, of.resource.Namespace, of.resource.Name, of.component} {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part) // a hash returns no error
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func (p *plans) isToken(token, viewer string, of planOf) bool {
	return hmac.Equal([]byte(token), []byte(p.token(viewer, of)))
}

// begin notes that a plan is made from now on, or returns why none is, and when it may be asked for again.
func (p *plans) begin(of planOf, now time.Time) (refusal int, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.began, func(_ planOf, began time.Time) bool { return now.Sub(began) >= planInterval })
	if p.making {
		return http.StatusConflict, maxPlanTime
	}
	for other, began := range p.began {
		if other.isOf(of.root, of.resource) {
			return http.StatusTooManyRequests, planInterval - now.Sub(began)
		}
	}
	p.making, p.began[of] = true, now
	return 0, 0
}

// end notes that no plan is made any more.
func (p *plans) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = false
}

func (p *plans) keep(made *planRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = slices.DeleteFunc(p.made, func(r *planRecord) bool { return r.of == made.of })
	if len(p.made) == maxPlans {
		p.made = slices.Delete(p.made, 0, 1)
	}
	p.made = append(p.made, made)
}

// forget drops the plans of a resource that is gone.
func (p *plans) forget(root string, resource types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = slices.DeleteFunc(p.made, func(r *planRecord) bool { return r.of.isOf(root, resource) })
}

// last returns the last plan of a component, or nil.
func (p *plans) last(of planOf) *planRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.made {
		if r.of == of {
			return r
		}
	}
	return nil
}

// make makes a plan and keeps it. Begin was called before. A function of the author that does not return in time keeps
// others from being made until it does.
func (p *plans) make(
	ctx context.Context, of planOf, now time.Time, plan func(ctx context.Context) (*component.Plan, error),
) {
	ctx, cancel := context.WithTimeout(ctx, maxPlanTime)
	defer cancel()
	type result struct {
		plan *component.Plan
		err  error
	}
	done := make(chan result, 1)
	go func() {
		defer p.end()
		planned, err := plan(ctx)
		done <- result{planned, err}
	}()
	r := result{err: errors.New("it was not made in time")}
	select {
	case r = <-done:
	case <-ctx.Done():
	}
	made := &planRecord{of: of, when: now, err: textOf(r.err)}
	if r.err == nil {
		made.show(r.plan)
	}
	p.keep(made)
}

// show keeps of a plan what the page shows.
func (r *planRecord) show(plan *component.Plan) {
	r.counts, r.remote = countsOfPlan(plan), plan.Remote
	r.omitted = max(len(plan.Changes)-maxPlanChanges, 0)
	for i := range plan.Changes[:len(plan.Changes)-r.omitted] {
		r.changes, r.refs = append(r.changes, changeViewOf(&plan.Changes[i])), append(r.refs, plan.Changes[i].Ref)
	}
	for _, obstacle := range plan.Obstacles[:min(len(plan.Obstacles), maxOperations)] {
		r.obstacles = append(r.obstacles, message.Truncate(obstacle, maxWriteText))
	}
}

// countsOfPlan says in one line how much a plan would do.
func countsOfPlan(plan *component.Plan) string {
	counts := map[string]int{}
	for i := range plan.Changes {
		counts[plan.Changes[i].Action]++
	}
	var parts []string
	for _, action := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d to %s", counts[action], action))
	}
	parts = append(parts, fmt.Sprintf("%d unchanged", plan.Unchanged))
	if n := len(plan.Obstacles); n > 0 {
		parts = append(parts, fmt.Sprintf("%d in the way", n))
	}
	return "Objects: " + strings.Join(parts, ", ") + "."
}
