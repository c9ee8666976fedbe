package plan_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFold(t *testing.T) {
	written := plan.Observed{Presence: plan.Present, UID: "u2", Generation: 7, Fields: "fields", Ownership: plan.Ours}
	stamp := metav1.NewTime(start)
	base := asIs(configMap("c"))
	base.Message = "before"
	record := func(change func(*apis.InventoryRecord)) *apis.InventoryRecord {
		r := base
		change(&r)
		return &r
	}
	use := plan.Use{State: plan.ForeignBlocking, Instances: []string{"Baz app/x"}}
	for name, test := range map[string]struct {
		phase   apis.InventoryPhase
		outcome plan.Outcome
		want    *apis.InventoryRecord
	}{
		"created": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionCreate}, Observed: written}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message, r.UID, r.Generation, r.Fields = apis.PhaseCreating, apis.ObjectInProgress, "", "u2", 7, "fields"
		})},
		"applied": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionApply, Stamp: true}, Observed: written}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message, r.UID, r.Generation, r.Fields = apis.PhaseUpdating, apis.ObjectInProgress, "", "u2", 7, "fields"
			r.LastAppliedAt = &stamp
		})},
		"replaced, with status": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionReplace},
			Observed: plan.Observed{Presence: plan.Present, UID: "u2", Fields: "f", Status: apis.ObjectFailed, Message: "no"}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message, r.UID, r.Generation, r.Fields = apis.PhaseUpdating, apis.ObjectFailed, "no", "u2", 0, "f"
		})},
		"adopted, no fields kept": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionAdopt}, Observed: plan.Observed{Presence: plan.Present, UID: "u2"}},
			want: record(func(r *apis.InventoryRecord) {
				r.Phase, r.Status, r.Message, r.UID, r.Generation, r.Fields = apis.PhaseUpdating, apis.ObjectInProgress, "", "u2", 0, plan.FieldsNone
			})},
		"applied, no answer": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionApply}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message, r.Generation, r.Fields = apis.PhaseUpdating, apis.ObjectInProgress, "", 0, ""
		})},
		"recreated": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionRecreate, UID: "u3"}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message, r.UID = apis.PhaseRecreating, apis.ObjectTerminating, "", "u3"
		})},
		"deleted": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionDelete}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message = apis.PhaseDeleting, apis.ObjectTerminating, ""
		})},
		"purged": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionPurge}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message = apis.PhaseCompleting, apis.ObjectTerminating, ""
		})},
		"type deleted": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionDeleteType}, Use: plan.Use{State: plan.ForeignNone}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Status, r.Message = apis.PhaseDeleting, apis.ObjectTerminating, ""
		})},
		"type in use": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionDeleteType}, Use: use}, want: record(func(r *apis.InventoryRecord) {
			r.Message = "in use by Baz app/x"
		})},
		"checked":  {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionCheck, Pattern: -1}, Use: use}, want: &base},
		"orphaned": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionOrphan}}},
		"orphaned by purge": {phase: apis.PhaseScheduledForCompletion, outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionOrphan}}, want: record(func(r *apis.InventoryRecord) {
			r.Phase, r.Message, r.UID, r.Fields, r.Generation = apis.PhaseCompleted, "", "", "", 0
		})},
		"failed": {outcome: plan.Outcome{Operation: plan.Operation{Action: plan.ActionApply}, Err: errors.New(strings.Repeat("ä", 300)), Observed: written},
			want: record(func(r *apis.InventoryRecord) { r.Message = strings.Repeat("ä", 98) + "…" })},
	} {
		t.Run(name, func(t *testing.T) {
			inventory := []apis.InventoryRecord{asIs(configMap("a")), base, asIs(configMap("z"))}
			if test.phase != "" {
				inventory[1].Phase = test.phase
			}
			test.outcome.Operation.Key = configMap("c").Key
			folded := plan.Fold(inventory, []plan.Outcome{test.outcome,
				{Operation: plan.Operation{Action: plan.ActionDelete, Key: configMap("unknown").Key}}}, start)
			want := []apis.InventoryRecord{asIs(configMap("a")), asIs(configMap("z"))}
			if test.want != nil {
				want = []apis.InventoryRecord{want[0], *test.want, want[1]}
			}
			if !reflect.DeepEqual(folded, want) {
				t.Errorf("records are\n%+v, want\n%+v", folded, want)
			}
			if test.phase == "" && !reflect.DeepEqual(inventory[1], base) {
				t.Errorf("the input was changed to %+v, want %+v", inventory[1], base)
			}
		})
	}
}

// The time of a write is recorded only for objects that are rewritten periodically.
func TestFoldOfAWriteWithoutStamp(t *testing.T) {
	r := asIs(configMap("c"))
	r.LastAppliedAt = &metav1.Time{Time: start}
	o := plan.Operation{Action: plan.ActionApply, Key: plan.KeyOf(r), UID: r.UID, Pattern: -1}
	outcome := plan.Outcome{Operation: o, Observed: live(configMap("c"))}
	if folded := plan.Fold([]apis.InventoryRecord{r}, []plan.Outcome{outcome}, start); folded[0].LastAppliedAt != nil {
		t.Errorf("the last apply was at %v, want no time", folded[0].LastAppliedAt)
	}
}

func TestFoldOfAPatternCheck(t *testing.T) {
	inventory := []apis.InventoryRecord{asIs(configMap("c"))}
	outcome := plan.Outcome{Operation: plan.Operation{Action: plan.ActionCheck, Key: plan.Key{Kind: "*"}, Pattern: 0},
		Err: errInvalid}
	if folded := plan.Fold(inventory, []plan.Outcome{outcome}, start); !reflect.DeepEqual(folded, inventory) {
		t.Errorf("the records are %v, want %v", folded, inventory)
	}
}

// A record omits defaults.
func TestRecordOfADesiredObject(t *testing.T) {
	d := with(crd("baz"), policy(apis.PrunePolicy("")))
	p := plan.Make(plan.Input{Desired: []plan.Desired{with(d, policy(apis.AdoptNever))}})
	if got := p.Inventory[0].AdoptionPolicy; got != "" {
		t.Errorf("the adoption policy is %q, want none", got)
	}
	// The default is another one for an object that holds data.
	p = plan.Make(plan.Input{Desired: []plan.Desired{crd("baz"), foo("foo")}})
	if got := recordsBy(p.Inventory); got[crd("baz").Key].PrunePolicy != apis.PruneWith || got[foo("foo").Key].PrunePolicy != "" {
		t.Errorf("the records are %v, want the prune policy With for the type alone", got)
	}
	p = plan.Make(plan.Input{Desired: []plan.Desired{d}})
	want := apis.InventoryRecord{Group: d.Group, Version: "v1", Kind: d.Kind, Name: d.Name,
		ManagedTypes: d.ManagedTypes, Digest: "1", AdoptionPolicy: apis.AdoptIfUnowned,
		Phase: apis.PhaseScheduledForApplication, Status: apis.ObjectInProgress}
	if !reflect.DeepEqual(p.Inventory, []apis.InventoryRecord{want}) {
		t.Errorf("the record is %+v, want %+v", p.Inventory, want)
	}
	d = with(d, purged(3), order(1, 2), policy(apis.AdoptAlways), policy(apis.UpdateReplace), policy(apis.DeleteOrphan),
		policy(apis.PruneAfter))
	d.ReconcilePolicy, d.IgnoreForeignInstances, d.Version = apis.ReconcileOnce, true, "v2"
	after := int16(3)
	want = apis.InventoryRecord{Group: d.Group, Version: "v2", Kind: d.Kind, Name: d.Name,
		ManagedTypes: d.ManagedTypes, Digest: "1", ApplyOrder: 1, DeleteOrder: 2,
		PurgeOrder: &after, AdoptionPolicy: apis.AdoptAlways, ReconcilePolicy: apis.ReconcileOnce, UpdatePolicy: apis.UpdateReplace, DeletePolicy: apis.DeleteOrphan,
		PrunePolicy: apis.PruneAfter, IgnoreForeignInstances: true, Phase: apis.PhaseScheduledForApplication, Status: apis.ObjectInProgress}
	p = plan.Make(plan.Input{Desired: []plan.Desired{d}, Inventory: p.Inventory})
	if !reflect.DeepEqual(p.Inventory, []apis.InventoryRecord{want}) {
		t.Errorf("the record is %+v, want %+v", p.Inventory, want)
	}
}

// The status and message of a record follow the observation.
func TestRecordFollowsTheObject(t *testing.T) {
	d := foo("foo")
	r, s := asIs(d), live(d)
	s.Status, s.Message = apis.ObjectInProgress, strings.Repeat("x", 1000)
	p := plan.Make(single(d, &r, s))
	if got := p.Inventory[0]; got.Status != apis.ObjectInProgress || len(got.Message) != 200 ||
		!utf8.ValidString(got.Message) || got.Phase != apis.PhaseReady {
		t.Errorf("the record is %+v, want it ready and in progress, with a message of 200 bytes of valid UTF-8", got)
	}
	p = plan.Make(single(d, &p.Inventory[0], live(d)))
	if !reflect.DeepEqual(p.Inventory[0], r) {
		t.Errorf("the record is %+v, want %+v", p.Inventory[0], r)
	}
	// Nothing is known yet after a start: that is no news.
	p = plan.Make(single(d, &r, plan.Observed{}))
	if !reflect.DeepEqual(p.Inventory[0], r) {
		t.Errorf("the record is %+v, want %+v", p.Inventory[0], r)
	}
	s = live(d)
	s.UID, s.Generation = "u9", 1
	if got := plan.Make(single(d, &r, s)).Inventory[0]; got.UID != "u9" || got.Generation != 0 {
		t.Errorf("the record is %+v, want the UID u9 and no generation", got)
	}
}

func TestStampIsKept(t *testing.T) {
	d := configMap("c")
	d.ReapplyInterval = time.Hour
	c := newComponent(t, d)
	c.pass()
	if at := c.stored[0].LastAppliedAt; at == nil || !at.Time.Equal(start) {
		t.Errorf("the last apply was at %v, want %s", at, start)
	}
	c.cluster.now = start.Add(time.Hour)
	c.pass()
	if at := c.stored[0].LastAppliedAt; !at.Time.Equal(c.cluster.now) {
		t.Errorf("the last apply was at %v, want %s", at, c.cluster.now)
	}
	same(t, "operations", c.cluster.trace, []string{"create c", "apply c"})
}
