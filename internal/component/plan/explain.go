package plan

import (
	"maps"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/types"
)

// Explain says line by line what would happen, see [Simulate].
func Explain(in Input) string { return Text(Simulate(in)) }

// Text is the text of what [Simulate] returns.
func Text(stages []Stage, last Plan) string {
	var b strings.Builder
	for _, stage := range stages {
		stage.write(&b)
	}
	last.writeObstacles(&b)
	switch {
	case last.Empty:
		return "nothing: no object is desired, and those that exist stay as they are\n"
	case b.Len() == 0:
		return "nothing to do\n"
	}
	return b.String()
}

// Simulate returns the stages that would be done if all went well: each operation succeeds, each object becomes ready
// once its wave is open, each deletion ends, and types are not used by others unless that is known. The last plan has
// the obstacles that stay even then. It does not change the input.
func Simulate(in Input) (stages []Stage, last Plan) {
	s := simulation{in: in, digests: make(map[Key]string, len(in.Desired))}
	s.in.Observed = copyOf(in.Observed)
	s.in.Uses, s.in.PatternUses = copyOf(in.Uses), copyOf(in.PatternUses)
	for i := range in.Desired {
		if d := &in.Desired[i]; s.digests[d.Key] == "" {
			s.digests[d.Key] = d.Digest
		}
	}
	// Each object is written, observed, purged or deleted a few times at most. The limit ends a simulation that repeats
	// itself.
	rounds := 8*(len(in.Desired)+len(in.Inventory)+len(in.Patterns)) + 8
	for range rounds {
		last = Make(s.in)
		s.in.Inventory = last.Inventory
		if len(last.Next.Operations) > 0 {
			stages = append(stages, last.Next)
			s.run(last.Next)
		} else if last.Done || !s.advance(last) {
			return stages, last
		}
	}
	return stages, Make(s.in)
}

const simulatedPrefix = "simulated-"

// IsSimulated reports whether an operation is about an object that does not exist yet, though it has a UID.
func (o *Operation) IsSimulated() bool { return strings.HasPrefix(string(o.UID), simulatedPrefix) }

// copyOf returns a copy of a map that may be nil.
func copyOf[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	maps.Copy(c, m)
	return c
}

// simulation is a cluster in which all goes well.
type simulation struct {
	// in is the next input. Its maps are copies.
	in      Input
	digests map[Key]string
	objects int
}

// run changes the input as if the operations were done.
func (s *simulation) run(stage Stage) {
	outcomes := make([]Outcome, 0, len(stage.Operations))
	for _, o := range stage.Operations {
		outcome := Outcome{Operation: o, Use: Use{State: ForeignNone}}
		switch o.Action {
		case ActionCheck:
			if o.Pattern >= 0 {
				s.in.PatternUses[o.Pattern] = outcome.Use
			} else {
				s.in.Uses[o.Key] = outcome.Use
			}
			continue
		case ActionCreate, ActionAdopt, ActionRelabel, ActionApply, ActionReplace:
			outcome.Observed = s.written(o)
			s.in.Observed[o.Key] = outcome.Observed
		case ActionOrphan:
			orphan := s.in.Observed[o.Key]
			orphan.Ownership = Unowned
			s.in.Observed[o.Key] = orphan
		case ActionRecreate, ActionDelete, ActionDeleteType, ActionDeleteNamespace, ActionPurge:
			s.in.Observed[o.Key] = Observed{Presence: Absent}
		}
		outcomes = append(outcomes, outcome)
	}
	s.in.Inventory = Fold(s.in.Inventory, outcomes, s.in.Now)
}

// written returns what would be observed of an object after it was written.
func (s *simulation) written(o Operation) Observed {
	observed := s.in.Observed[o.Key]
	if o.Action == ActionCreate {
		s.objects++
		observed = Observed{UID: types.UID(simulatedPrefix + strconv.Itoa(s.objects))}
	}
	observed.Presence, observed.Ownership, observed.Claim = Present, Ours, ""
	observed.Content, observed.Fields = ContentUnknown, "simulated"
	observed.Status, observed.Message, observed.Volatile = apis.ObjectCurrent, "", false
	observed.Digest = s.digests[o.Key]
	return observed
}

// advance changes the input as if time had passed: what is waited for exists, is ready, or is gone. It reports
// whether anything changed.
func (s *simulation) advance(p Plan) (changed bool) {
	records := make(map[Key]*apis.InventoryRecord, len(p.Inventory))
	for i := range p.Inventory {
		records[KeyOf(p.Inventory[i])] = &p.Inventory[i]
	}
	for _, o := range p.Obstacles {
		record := records[o.Key]
		if record == nil || (o.Kind != ObstacleWaiting && o.Kind != ObstacleFailed) {
			continue
		}
		before := s.in.Observed[o.Key]
		after := before
		switch {
		case before.Presence == PresenceUnknown && record.UID == "":
			after = Observed{Presence: Absent}
		case before.Presence == PresenceUnknown:
			after = Observed{Presence: Present, UID: record.UID, Generation: record.Generation, Ownership: Ours,
				Digest: record.Digest, Fields: record.Fields, Status: apis.ObjectCurrent}
		case before.Presence == Absent:
			after.TypeMissing = before.TypeMissing && o.Kind != ObstacleWaiting
		case before.Terminating:
			after = Observed{Presence: Absent}
		case before.Ownership == Ours:
			after.Status, after.Message, after.Volatile = apis.ObjectCurrent, "", false
			after.Generation = max(before.Generation, record.Generation)
		}
		if after != before {
			s.in.Observed[o.Key] = after
			changed = true
		}
	}
	return changed
}
