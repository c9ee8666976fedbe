package plan

import (
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
)

// Planner makes the plans of one run, one after the other. They are the plans that [Make] would make. But if only
// writes are left, a plan costs what has changed since the last one, and not what there is: otherwise the cost of a
// roll-out would grow with the number of its waves times the number of its objects.
//
// The caller changes the input between two plans, and says so: with Add for the outcomes of a stage, with Changed for
// other keys. It does not change what is desired.
type Planner struct {
	in *Input
	b  *builder
	// steady reports whether the next plan can be made from the last one: all records are of desired objects, and none
	// is purged. waves then has what each wave contributes, and is nil before the second plan.
	steady bool
	waves  []contribution
	// Waves before first are complete, and the ones from quiet on wait for earlier ones and contribute nothing else.
	first, quiet int
	// added reports whether the inventory of the input has outcomes that the last plan does not have.
	added bool
}

// contribution is what one wave contributes to a plan.
type contribution struct {
	// stale reports whether an object of the wave has changed.
	stale bool
	// open reports whether all waves before were ready.
	open bool
	// next are the operations that come first in the wave, with their rank.
	next      []Operation
	rank      rank
	obstacles []Obstacle
	// reapply and recheck are those of the plan.
	reapply, recheck time.Time
	// done counts the objects that are done, left those that are neither done nor gone.
	done, left int
}

// New returns a planner for an input, which it keeps, and whose inventory it changes.
func New(in *Input) *Planner { return &Planner{in: in} }

// Next makes the next plan. If the plan was made from the last one, it has no inventory: its records have the keys of
// the last inventory, and [Planner.Inventory] returns them.
func (p *Planner) Next() Plan {
	if !p.steady {
		p.b = build(p.in)
		p.steady, p.waves, p.added = p.b.onlyWrites(), nil, false
		if p.steady {
			// The records change with the outcomes.
			p.b.plan.Inventory = slices.Clone(p.b.plan.Inventory)
		}
		return p.b.plan
	}
	if p.waves == nil {
		p.waves = make([]contribution, len(p.b.waves))
		p.markAll()
		for i := range p.b.items {
			p.b.items[i].see(p.in)
		}
	}
	return p.advance()
}

// onlyWrites reports whether nothing is pruned, purged or deleted, so that waves depend on each other only by being
// ready.
func (b *builder) onlyWrites() bool {
	purges := func(w wave) bool { return len(w.purged) > 0 }
	return !b.in.Deleting && !b.plan.Empty && len(b.undesired) == 0 && !slices.ContainsFunc(b.waves, purges)
}

// Add puts the outcomes of a stage into the records. What was observed and what failed has to be in the input.
func (p *Planner) Add(outcomes []Outcome) {
	writes := func(o Outcome) bool { return o.Operation.isWrite() }
	if p.steady && slices.ContainsFunc(outcomes, func(o Outcome) bool { return !writes(o) }) {
		p.b.plan.Inventory, p.steady = p.Inventory(), false
	}
	if !p.steady {
		inventory := p.b.plan.Inventory
		if p.added {
			inventory = p.in.Inventory
		}
		p.in.Inventory, p.added = Fold(inventory, outcomes, p.in.Now), true
		return
	}
	for i := range outcomes {
		o := &outcomes[i]
		if position, ok := p.b.positions[o.Operation.Key]; ok {
			recordOutcome(&p.b.records[position], o, p.in.Now)
			p.Changed(o.Operation.Key)
		}
	}
}

// isWrite reports whether the operation creates or changes an object that is desired.
func (o *Operation) isWrite() bool {
	switch o.Action {
	case ActionCreate, ActionAdopt, ActionRelabel, ActionApply, ActionReplace, ActionRecreate:
		return true
	default:
		return false
	}
}

// Changed says that what is observed of an object has changed, or that an operation on it failed.
func (p *Planner) Changed(key Key) {
	position, ok := p.b.positions[key]
	if !p.steady || !ok || p.waves == nil {
		return
	}
	it := &p.b.items[position]
	it.see(p.in)
	p.waves[it.wave].stale = true
	p.first, p.quiet = min(p.first, it.wave), max(p.quiet, it.wave+1)
	if it.inside != nil {
		// What is in a namespace depends on the namespace.
		p.markAll()
	}
}

func (p *Planner) markAll() {
	p.first, p.quiet = 0, len(p.waves)
	for i := range p.waves {
		p.waves[i].stale = true
	}
}

// Record returns the record of an object, as the last plan has it.
func (p *Planner) Record(key Key) (record apis.InventoryRecord, ok bool) {
	position, ok := p.b.positions[key]
	if ok {
		record = p.b.records[position]
	}
	return record, ok
}

// Inventory returns the records, with the outcomes that were added, in the order of the inventory of a plan.
func (p *Planner) Inventory() []apis.InventoryRecord {
	switch {
	case p.steady:
		return slices.Clone(p.b.inventory())
	case p.added:
		return p.in.Inventory
	default:
		return p.b.plan.Inventory
	}
}

// advance makes a plan from what the waves contribute, and looks again at the waves that may contribute something else.
func (p *Planner) advance() Plan {
	next := Plan{Done: true, Progress: Progress{Waves: len(p.waves)}, Recheck: p.in.Recheck}
	open := true
	i := p.first
	for ; i < len(p.waves) && (open || i < p.quiet); i++ {
		c, w := &p.waves[i], &p.b.waves[i]
		if c.stale || c.open != open {
			*c = p.b.contribute(w, open)
		}
		open = open && w.ready
		if i == p.first && open && c.left == 0 && c.isSilent() {
			p.first++
		}
		if !open && next.Progress.Wave == 0 {
			next.Progress.Wave, next.Progress.Ready, next.Progress.Total = i+1, c.done, len(w.items)
		}
		if len(next.Next.Operations) == 0 && len(c.next) > 0 {
			p.b.next, next.Next.Operations = c.rank, c.next
			next.Next.Title, next.Next.Wave = p.b.title(), p.b.waveName()
		}
		next.Obstacles = append(next.Obstacles, c.obstacles...)
		next.Reapply, next.Recheck = earlier(next.Reapply, c.reapply), earlier(next.Recheck, c.recheck)
		next.Done = next.Done && c.left == 0
	}
	if i < len(p.waves) {
		next.Done = false
		return next
	}
	for p.quiet = i; p.quiet > 0; p.quiet-- {
		if c := &p.waves[p.quiet-1]; c.open || c.left == 0 || !c.isSilent() {
			break
		}
	}
	return next
}

// earlier returns the earlier of two times. The zero time is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isSilent reports whether the wave contributes nothing but its counts.
func (c *contribution) isSilent() bool {
	return len(c.next) == 0 && len(c.obstacles) == 0 && c.reapply.IsZero() && c.recheck.IsZero()
}

// contribute plans for the objects of one wave, as Make does for all.
func (b *builder) contribute(w *wave, open bool) contribution {
	b.plan = Plan{}
	for _, it := range w.items {
		*it = item{
			key: it.key, record: it.record, desired: it.desired, kind: it.kind, namespace: it.namespace,
			inside: it.inside, wave: it.wave, position: it.position,
		}
		it.see(b.in)
		recordDesired(it.record, it.desired)
		b.assess(it)
	}
	b.openWave(w, open)
	b.collect(w.items)
	c := contribution{
		open: open, next: b.plan.Next.Operations, rank: b.next, obstacles: b.plan.Obstacles,
		reapply: b.plan.Reapply, recheck: b.plan.Recheck,
	}
	for _, it := range w.items {
		if it.state == stateDone {
			c.done++
		} else if it.isLeft() {
			c.left++
		}
	}
	return c
}
