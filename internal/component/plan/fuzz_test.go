package plan_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dice takes choices from bytes, and 0 once these are used up.
type dice struct{ data []byte }

func (d *dice) roll(sides int) int {
	if len(d.data) == 0 {
		return 0
	}
	n := int(d.data[0]) % sides
	d.data = d.data[1:]
	return n
}

func (d *dice) chance() bool { return d.roll(2) == 1 }

func pick[T any](d *dice, from ...T) T { return from[d.roll(len(from))] }

func (d *dice) key() plan.Key {
	k := pick(d, plan.Key{Kind: "Namespace"}, plan.Key{Kind: "ConfigMap", Namespace: "app"}, plan.Key{Kind: "Secret", Namespace: "a"},
		plan.Key{Group: "test.local", Kind: "Foo", Namespace: "app"}, plan.Key{Group: "other.local", Kind: "Foo", Namespace: "app"},
		plan.Key{Group: "test.local", Kind: "Foo"}, plan.Key{Group: "test.local", Kind: "Baz", Namespace: "app"},
		plan.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, plan.Key{Group: "apiregistration.k8s.io", Kind: "APIService"})
	k.Name = pick(d, "app", "a", "b")
	return k
}

func (d *dice) types(k plan.Key) []apis.ManagedType {
	if k.Group != "apiextensions.k8s.io" && k.Group != "apiregistration.k8s.io" && d.roll(8) != 1 {
		return nil
	}
	return pick(d, nil, []apis.ManagedType{{Group: "test.local", Version: "*", Kind: "Baz"}}, []apis.ManagedType{{Group: "other.local", Version: "v1", Kind: "*"}},
		[]apis.ManagedType{{Group: "", Version: "*", Kind: "*"}, {Group: "*", Version: "*", Kind: "APIService"}})
}

func (d *dice) purge() *int16 {
	if !d.chance() {
		return nil
	}
	order := int16(d.roll(4) - 1)
	return &order
}

func (d *dice) desired() plan.Desired {
	k := d.key()
	return plan.Desired{Key: k, Version: "v1", Digest: pick(d, "1", "2", plan.DigestOnce),
		AdoptionPolicy: pick(d, "", apis.AdoptIfUnowned, apis.AdoptNever, apis.AdoptAlways),
		UpdatePolicy:   pick(d, apis.UpdateApply, apis.UpdateRecreate, apis.UpdateReplace, apis.UpdateApplyOverride),
		DeletePolicy:   pick(d, apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete),
		PrunePolicy:    pick(d, apis.PruneWith, apis.PruneBefore, apis.PruneAfter),
		ApplyOrder:     int16(d.roll(3)), DeleteOrder: int16(d.roll(3)), PurgeOrder: d.purge(),
		ReapplyInterval: pick(d, 0, time.Hour), ManagedTypes: d.types(k), IgnoreForeignInstances: d.roll(4) == 1,
		Expires: d.roll(4) == 1}
}

func (d *dice) record() apis.InventoryRecord {
	k := d.key()
	r := apis.InventoryRecord{Group: k.Group, Version: "v1", Kind: k.Kind, Namespace: k.Namespace, Name: k.Name,
		UID: pick(d, types.UID(""), "u1", "u2"), DeletePolicy: pick(d, "", apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete),
		PrunePolicy: pick(d, "", apis.PruneBefore, apis.PruneAfter), ApplyOrder: int16(d.roll(3)), DeleteOrder: int16(d.roll(3)), PurgeOrder: d.purge(),
		ManagedTypes: d.types(k), IgnoreForeignInstances: d.roll(4) == 1, Digest: pick(d, "", "1", "2", plan.DigestOnce),
		Fields: pick(d, "", "ours", plan.FieldsNone), Generation: int64(d.roll(3)),
		Phase: pick(d, "", apis.PhaseScheduledForApplication, apis.PhaseScheduledForDeletion, apis.PhaseScheduledForCompletion, apis.PhaseCreating,
			apis.PhaseUpdating, apis.PhaseRecreating, apis.PhaseDeleting, apis.PhaseCompleting, apis.PhaseReady, apis.PhaseCompleted)}
	if d.chance() {
		at := metav1.NewTime(start.Add(-time.Duration(d.roll(3)) * time.Hour))
		r.LastAppliedAt = &at
	}
	return r
}

func (d *dice) observed() plan.Observed {
	switch d.roll(4) {
	case 0:
		return plan.Observed{}
	case 1:
		seen := plan.Observed{Presence: plan.Absent, TypeMissing: d.chance(), Misplaced: d.roll(4) == 1}
		if seen.Ending = d.ending(); seen.Ending != plan.EndingUnknown {
			seen.Digest = pick(d, "1", "2")
		}
		return seen
	default:
		return plan.Observed{Presence: plan.Present, UID: pick(d, types.UID("u1"), "u2", "u3", ""), Generation: int64(d.roll(3)), Terminating: d.roll(4) == 1,
			Ownership: pick(d, plan.Ours, plan.Unowned, plan.Predecessor, plan.Foreign, plan.Unlabelled), Digest: pick(d, "", "1", "2", plan.DigestOnce), Ending: d.ending(),
			Fields: pick(d, "", "ours", "other"), Content: pick(d, plan.ContentUnknown, plan.ContentSame, plan.ContentDifferent),
			Status: pick(d, apis.ObjectCurrent, apis.ObjectInProgress, apis.ObjectFailed, ""), Volatile: d.roll(4) == 1}
	}
}

func (d *dice) ending() plan.Ending {
	return pick(d, plan.EndingUnknown, plan.EndingCompleted, plan.EndingFailed, plan.EndingInterrupted)
}

func (d *dice) use() plan.Use {
	return plan.Use{State: pick(d, plan.ForeignNone, plan.ForeignUnchecked, plan.ForeignBlocking, plan.ForeignUnknown), More: d.roll(3) - 1}
}

func (d *dice) input() plan.Input {
	in := plan.Input{Deleting: d.chance(), Observed: map[plan.Key]plan.Observed{}, Failed: map[plan.Key]string{}, Uses: map[plan.Key]plan.Use{},
		PatternUses: map[int]plan.Use{}, Now: start}
	for i := range d.roll(3) {
		in.Patterns = append(in.Patterns, plan.Pattern{Group: pick(d, "*", "*.local", "test.local", ""), Kind: pick(d, "*", "Foo", "Namespace")})
		in.PatternUses[i] = d.use()
	}
	keys := map[plan.Key]bool{}
	add := func(k plan.Key) {
		if keys[k] {
			return
		}
		keys[k] = true
		in.Observed[k] = d.observed()
		if d.roll(6) == 1 {
			in.Failed[k] = "it failed"
		}
		if d.chance() {
			in.Uses[k] = d.use()
		}
	}
	for range d.roll(8) {
		r := d.record()
		in.Inventory = append(in.Inventory, r)
		add(plan.KeyOf(r))
	}
	for range d.roll(8) {
		wanted := d.desired()
		if slices.ContainsFunc(in.Desired, func(other plan.Desired) bool { return other.Key == wanted.Key }) && d.roll(4) != 1 {
			continue
		}
		in.Desired = append(in.Desired, wanted)
		add(wanted.Key)
	}
	in.AllowEmpty = d.chance()
	return in
}

// FuzzMake: all invariants hold for any input, and nothing panics.
func FuzzMake(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		data := make([]byte, 40+random.IntN(500))
		for i := range data {
			data[i] = byte(random.UintN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := (&dice{data}).input()
		p := plan.Make(in)
		if untouched := (&dice{data}).input(); !reflect.DeepEqual(in, untouched) {
			t.Fatalf("the input is\n%+v\nwant, unchanged,\n%+v", in, untouched)
		}
		duplicates := in
		duplicates.Desired = unique(in.Desired)
		if violation := violationOf(duplicates, p); violation != "" {
			t.Fatalf("the plan of duplicates breaks an invariant, want none broken: %s\n%+v\n%s", violation, in, p)
		}
		again := in
		again.Observed, again.Uses = rehash(in.Observed), rehash(in.Uses)
		if other := plan.Make(again); !reflect.DeepEqual(p, other) {
			t.Fatalf("L8: two plans for one input, want the same:\n%s\n%s", p, other)
		}
		// What was planned is stored; to plan for that is to plan the same.
		stored := in
		stored.Inventory = p.Inventory
		if other := plan.Make(stored); !in.Deleting && !reflect.DeepEqual(other.Next, p.Next) {
			t.Fatalf("there is another plan once the inventory is stored, want the same:\n%s\n%s\n%+v", p, other, in)
		}
		if text := plan.Message(p, 100); len(text) > 100 || text == "" {
			t.Fatalf("the message is %q, want one of 1 to 100 bytes", text)
		}
		_ = plan.Explain(in)
	})
}

// unique drops the second desired object of a key.
func unique(desired []plan.Desired) []plan.Desired {
	seen := map[plan.Key]bool{}
	return slices.DeleteFunc(slices.Clone(desired), func(d plan.Desired) bool {
		twice := seen[d.Key]
		seen[d.Key] = true
		return twice
	})
}

// rehash returns an equal map with another layout.
func rehash[K comparable, V any](m map[K]V) map[K]V {
	other := make(map[K]V, 10*len(m))
	maps.Copy(other, m)
	return other
}
