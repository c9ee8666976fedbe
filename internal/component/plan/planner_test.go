package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

// rollingOut returns an input of which only writes follow: everything that is recorded is desired, and nothing is
// purged.
func (d *dice) rollingOut() plan.Input {
	in := d.input()
	in.Deleting = false
	for range d.roll(20) {
		o := d.desired()
		in.Desired = append(in.Desired, o)
		if _, ok := in.Observed[o.Key]; !ok {
			in.Observed[o.Key] = pick(d, plan.Observed{Presence: plan.Absent}, d.observed())
		}
	}
	in.Desired = unique(in.Desired)
	keys := map[plan.Key]bool{}
	for i := range in.Desired {
		in.Desired[i].PurgeOrder = nil
		in.Desired[i].ApplyOrder = int16(d.roll(6))
		keys[in.Desired[i].Key] = true
	}
	in.Inventory = slices.DeleteFunc(in.Inventory, func(r apis.InventoryRecord) bool { return !keys[plan.KeyOf(r)] })
	return in
}

// happens changes the input as if the operations of a stage were carried out, or failed, and as if something else
// happened besides.
func (d *dice) happens(in *plan.Input, stage plan.Stage) (outcomes []plan.Outcome, others []plan.Key) {
	for _, o := range stage.Operations {
		outcome := plan.Outcome{Operation: o}
		switch {
		case o.Action == plan.ActionCheck && o.Pattern >= 0:
			outcome.Use = d.use()
			in.PatternUses[o.Pattern] = outcome.Use
		case o.Action == plan.ActionCheck:
			outcome.Use = d.use()
			in.Uses[o.Key] = outcome.Use
		case d.roll(4) == 1:
			outcome.Err = errors.New("it was refused")
			in.Failed[o.Key] = "it was refused"
		default:
			outcome.Observed = plan.Observed{Presence: plan.Present, UID: types.UID("u" + strconv.Itoa(d.roll(3))), Ownership: plan.Ours, Fields: "ours",
				Digest: pick(d, "1", "2"), Status: pick(d, apis.ObjectCurrent, apis.ObjectCurrent, apis.ObjectInProgress, "")}
			if d.roll(6) == 1 {
				outcome.Observed = d.observed()
				// What cannot exist is known before the first plan.
				outcome.Observed.Misplaced = false
			}
			outcome.Use = d.use()
			in.Observed[o.Key] = outcome.Observed
		}
		outcomes = append(outcomes, outcome)
		if o.Undoes != "" && outcome.Err == nil {
			in.Corrections[o.Key] = in.Corrections[o.Key].After(o, pick(d, "1", "2"), in.Now)
		}
	}
	for i := range in.Desired {
		if d.roll(12) == 1 {
			key := in.Desired[i].Key
			in.Failed[key] = "it was given up"
			others = append(others, key)
		}
	}
	return outcomes, others
}

// The plans of a planner are those of Make, whatever happens in between.
func TestPlannerMakesThePlansOfMake(t *testing.T) {
	for _, kind := range []string{"any", "writes"} {
		t.Run(kind, func(t *testing.T) {
			derived, last := 0, 0
			for seed := range uint64(3000) {
				random := rand.New(rand.NewPCG(seed, 11))
				data := make([]byte, 1200)
				for i := range data {
					data[i] = byte(random.UintN(256))
				}
				d := &dice{data}
				in := d.input()
				if kind == "writes" {
					in = d.rollingOut()
				}
				in.Corrections = map[plan.Key]plan.Corrections{}
				for i := range in.Desired {
					if o := in.Desired[i]; d.roll(4) == 1 {
						in.Corrections[o.Key] = plan.Corrections{Repetition: plan.Repetition{Last: start.Add(-time.Minute)}, Digest: o.Digest, Reason: "x"}.Futile()
					}
				}
				kept := in
				kept.Observed, kept.Failed, kept.Uses = maps.Clone(in.Observed), maps.Clone(in.Failed), maps.Clone(in.Uses)
				kept.PatternUses, kept.Corrections = maps.Clone(in.PatternUses), maps.Clone(in.Corrections)
				planner := plan.New(&kept)
				for round := range 12 {
					want, got := plan.Make(in), planner.Next()
					if got.Inventory == nil && len(want.Inventory) > 0 {
						derived++
						got.Inventory = planner.Inventory()
					}
					if !reflect.DeepEqual(want, got) {
						t.Fatalf("seed %d, plan %d:\n%s\nis not\n%s\n%+v\n%+v", seed, round, got, want, got, want)
					}
					for _, r := range want.Inventory {
						if record, ok := planner.Record(plan.KeyOf(r)); !ok || !reflect.DeepEqual(record, r) {
							t.Fatalf("seed %d, plan %d: the record is %+v, want %+v", seed, round, record, r)
						}
					}
					if len(want.Next.Operations) == 0 {
						last++
						break
					}
					d2 := *d
					outcomes, others := d.happens(&in, want.Next)
					in.Inventory = plan.Fold(want.Inventory, outcomes, in.Now)
					d2.happens(&kept, got.Next)
					planner.Add(outcomes)
					for _, key := range others {
						planner.Changed(key)
					}
					if inventory := planner.Inventory(); !reflect.DeepEqual(inventory, in.Inventory) && len(in.Inventory) > 0 {
						t.Fatalf("seed %d, plan %d: the inventory is\n%+v\nwant\n%+v", seed, round, inventory,
							in.Inventory)
					}
				}
			}
			t.Logf("%d plans were made from the one before, %d runs came to an end", derived, last)
			if kind == "writes" && derived < 3000 || last < 1000 {
				t.Errorf("%d plans came from the one before and %d runs to an end, want 3000 (of writes) and 1000",
					derived, last)
			}
		})
	}
}

// A roll-out in a hundred times as many waves takes little more to plan.
func BenchmarkPlanner(b *testing.B) {
	const objects = 10_000
	for _, waves := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("waves=%d", waves), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := plan.Input{Observed: map[plan.Key]plan.Observed{}, Failed: map[plan.Key]string{}, Now: start}
				for i := range objects {
					o := with(configMap(strconv.Itoa(i)), order(int16(i%waves), 0))
					in.Desired = append(in.Desired, o)
					in.Observed[o.Key] = plan.Observed{Presence: plan.Absent}
				}
				planner, stages := plan.New(&in), 0
				for next := planner.Next(); len(next.Next.Operations) > 0; next = planner.Next() {
					outcomes := make([]plan.Outcome, len(next.Next.Operations))
					for i, o := range next.Next.Operations {
						seen := plan.Observed{Presence: plan.Present, UID: "u", Ownership: plan.Ours, Digest: "1", Fields: "f", Status: apis.ObjectCurrent}
						record, _ := planner.Record(o.Key)
						seen.Digest = record.Digest
						in.Observed[o.Key] = seen
						outcomes[i] = plan.Outcome{Operation: o, Observed: seen}
					}
					planner.Add(outcomes)
					stages++
				}
				if stages != waves || len(planner.Inventory()) != objects {
					b.Fatalf("there are %d stages and %d records, want %d and %d", stages, len(planner.Inventory()),
						waves, objects)
				}
			}
		})
	}
}
