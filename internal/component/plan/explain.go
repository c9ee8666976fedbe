package plan

import (
	"maps"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// Rehearse tells what would be done, stage by stage, if every operation succeeded, every object became ready once its turn has
// come, every deletion ended, and nobody else used types of which that is not known. It returns the last plan too, whose obstacles are
// what even then stays in the way. It changes nothing of in.
func Rehearse(in Input) ([]Stage, Plan) {
	r := rehearsal{in: in, desired: make(map[Key]*Desired, len(in.Desired))}
	r.in.Observed = maps.Clone(in.Observed)
	if r.in.Observed == nil {
		r.in.Observed = map[Key]Observed{}
	}
	for i := range in.Desired {
		if d := &in.Desired[i]; r.desired[d.Key] == nil {
			r.desired[d.Key] = d
		}
	}
	var stages []Stage
	// Each object is written, read, purged or deleted a few times at most. The bound is for plans that go round in circles.
	rounds := 8*(len(in.Desired)+len(in.Inventory)+len(in.Patterns)) + 8
	for range rounds {
		p := Make(r.in)
		r.in.Inventory = p.Inventory
		if len(p.Next.Operations) > 0 {
			stages = append(stages, p.Next)
			r.carryOut(p.Next)
			continue
		}
		if p.Done || !r.advance(p) {
			return stages, p
		}
	}
	return stages, Make(r.in)
}

// Explain says what would happen, see [Rehearse], line by line.
func Explain(in Input) string {
	stages, last := Rehearse(in)
	var b strings.Builder
	for _, stage := range stages {
		stage.write(&b)
	}
	last.writeObstacles(&b)
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// rehearsal is a cluster in which all goes well.
type rehearsal struct {
	in      Input
	desired map[Key]*Desired
	objects int
	// own tells that Uses and PatternUses are not the caller's any more.
	own bool
}

// carryOut does as if the operations were done.
func (r *rehearsal) carryOut(stage Stage) {
	outcomes := make([]Outcome, 0, len(stage.Operations))
	for _, o := range stage.Operations {
		outcome := Outcome{Operation: o, Use: Use{State: ForeignNone}}
		switch o.Action {
		case ActionCheck:
			r.clear(o)
			continue
		case ActionCreate, ActionAdopt, ActionApply, ActionReplace:
			outcome.Observed = r.write(o)
			r.in.Observed[o.Key] = outcome.Observed
		case ActionOrphan:
			left := r.in.Observed[o.Key]
			left.Ownership = Unowned
			r.in.Observed[o.Key] = left
		case ActionRecreate, ActionDelete, ActionDeleteType, ActionPurge:
			r.in.Observed[o.Key] = Observed{Presence: Absent}
		}
		outcomes = append(outcomes, outcome)
	}
	r.in.Inventory = Fold(r.in.Inventory, outcomes, r.in.Now)
}

// write returns what would be seen of an object after it was written.
func (r *rehearsal) write(o Operation) Observed {
	seen := r.in.Observed[o.Key]
	if o.Action == ActionCreate {
		r.objects++
		seen = Observed{UID: types.UID("rehearsed-" + strconv.Itoa(r.objects))}
	}
	seen.Presence, seen.Ownership = Present, Ours
	seen.Content, seen.Fields = ContentUnknown, "rehearsed"
	seen.Status, seen.Message, seen.Volatile = apis.ObjectCurrent, "", false
	if d := r.desired[o.Key]; d != nil {
		seen.Digest = d.Digest
	}
	return seen
}

// clear does as if nobody used the types that were asked for.
func (r *rehearsal) clear(o Operation) {
	if !r.own {
		r.own = true
		r.in.Uses, r.in.PatternUses = maps.Clone(r.in.Uses), maps.Clone(r.in.PatternUses)
		if r.in.Uses == nil {
			r.in.Uses = map[Key]Use{}
		}
		if r.in.PatternUses == nil {
			r.in.PatternUses = map[int]Use{}
		}
	}
	if o.Pattern >= 0 {
		r.in.PatternUses[o.Pattern] = Use{State: ForeignNone}
	} else {
		r.in.Uses[o.Key] = Use{State: ForeignNone}
	}
}

// advance does as if time had passed: what is waited for is there, ready, or gone. It tells whether that changed anything.
func (r *rehearsal) advance(p Plan) (changed bool) {
	records := make(map[Key]*apis.InventoryRecord, len(p.Inventory))
	for i := range p.Inventory {
		records[KeyOf(p.Inventory[i])] = &p.Inventory[i]
	}
	for _, o := range p.Obstacles {
		record := records[o.Key]
		if record == nil || (o.Kind != ObstacleWaiting && o.Kind != ObstacleFailed) {
			continue
		}
		before := r.in.Observed[o.Key]
		after := before
		switch {
		case before.Presence == PresenceUnknown && record.UID == "":
			after = Observed{Presence: Absent}
		case before.Presence == PresenceUnknown:
			after = Observed{Presence: Present, UID: record.UID, Generation: record.Generation, Ownership: Ours,
				Digest: record.Digest, Fields: record.Fields, Status: apis.ObjectCurrent}
		case before.Presence == Absent:
			if o.Kind == ObstacleWaiting {
				after.TypeMissing = false
			}
		case before.Terminating:
			after = Observed{Presence: Absent}
		case before.Ownership == Ours:
			after.Status, after.Message, after.Volatile = apis.ObjectCurrent, "", false
			after.Generation = max(before.Generation, record.Generation)
		}
		if after != before {
			r.in.Observed[o.Key] = after
			changed = true
		}
	}
	return changed
}
