package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// TestSuspendedPlans: what is planned about one object when the component is suspended, and when it is resumed.
func TestSuspendedPlans(t *testing.T) {
	key := plan.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "j"}
	ours := func(digest string) plan.Observed {
		return plan.Observed{
			Presence: plan.Present, UID: "u", Ownership: plan.Ours, Digest: digest, Fields: "f", Status: apis.ObjectCurrent,
		}
	}
	record := func(digest string, phase apis.InventoryPhase) apis.InventoryRecord {
		r := apis.InventoryRecord{Group: "batch", Version: "v1", Kind: "Job", Namespace: "n", Name: "j", Digest: digest, Phase: phase}
		if phase != apis.PhaseCompleted {
			r.UID, r.Fields = "u", "f"
		}
		return r
	}
	suspended, suspendedOnce := plan.SuspendedDigest("d", "r"), plan.SuspendedDigest(plan.DigestOnce, "r")
	for name, test := range map[string]struct {
		suspended bool
		desired   plan.Desired
		record    apis.InventoryRecord
		observed  plan.Observed
		action    plan.Action
		phase     apis.InventoryPhase
	}{
		"suspended": {
			true, plan.Desired{Digest: suspended}, record("d", apis.PhaseReady), ours("d"), plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"suspended already": {
			true, plan.Desired{Digest: suspended}, record(suspended, apis.PhaseReady), ours(suspended), "", apis.PhaseReady,
		},
		"resumed": {
			false, plan.Desired{Digest: "d"}, record(suspended, apis.PhaseReady), ours(suspended), plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"is not recreated to be suspended": {
			true, plan.Desired{Digest: suspended, UpdatePolicy: apis.UpdateRecreate}, record("d", apis.PhaseReady), ours("d"),
			plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"is not recreated to be resumed": {
			false, plan.Desired{Digest: "d", UpdatePolicy: apis.UpdateRecreate}, record(suspended, apis.PhaseReady), ours(suspended),
			plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"is recreated if its manifest changes, too": {
			false, plan.Desired{Digest: "e", UpdatePolicy: apis.UpdateRecreate}, record(suspended, apis.PhaseReady), ours(suspended),
			plan.ActionRecreate, apis.PhaseScheduledForApplication,
		},
		"written once, suspended": {
			true, plan.Desired{Digest: suspendedOnce}, record(plan.DigestOnce, apis.PhaseReady), ours(plan.DigestOnce),
			plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"written once, resumed": {
			false, plan.Desired{Digest: plan.DigestOnce}, record(suspendedOnce, apis.PhaseReady), ours(suspendedOnce),
			plan.ActionApply, apis.PhaseScheduledForApplication,
		},
		"a Job that is gone, suspended": {
			true, plan.Desired{Digest: suspended, Expires: true}, record("d", apis.PhaseCompleted), plan.Observed{Presence: plan.Absent},
			"", apis.PhaseCompleted,
		},
		"a Job that is gone, resumed": {
			false, plan.Desired{Digest: "d", Expires: true}, record(suspended, apis.PhaseCompleted), plan.Observed{Presence: plan.Absent},
			"", apis.PhaseCompleted,
		},
		"a Job that is gone, changed": {
			false, plan.Desired{Digest: "e", Expires: true}, record(suspended, apis.PhaseCompleted), plan.Observed{Presence: plan.Absent},
			plan.ActionCreate, apis.PhaseScheduledForApplication,
		},
		"gone for good and written once, suspended": {
			true, plan.Desired{Digest: suspendedOnce}, record(plan.DigestOnce, apis.PhaseCompleted), plan.Observed{Presence: plan.Absent},
			"", apis.PhaseCompleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.desired.Key, test.desired.Version = key, "v1"
			p := plan.Make(plan.Input{
				Suspended: test.suspended,
				Desired:   []plan.Desired{test.desired},
				Inventory: []apis.InventoryRecord{test.record},
				Observed:  map[plan.Key]plan.Observed{key: test.observed},
			})
			action := plan.Action("")
			if len(p.Next.Operations) == 1 {
				action = p.Next.Operations[0].Action
			}
			if action != test.action || len(p.Inventory) != 1 || p.Inventory[0].Phase != test.phase || p.Done != (test.action == "") {
				t.Errorf("the plan is %+v, want the action %q and one record in the phase %s", p, test.action,
					test.phase)
			}
		})
	}
}

// TestLeavingPlans: what leaves does so whatever its delete policy, and as long as the component is suspended, whatever
// waits.
func TestLeavingPlans(t *testing.T) {
	key := plan.Key{Kind: "Service", Namespace: "n", Name: "s"}
	waiting := plan.Key{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "d"}
	ours := plan.Observed{Presence: plan.Present, UID: "u", Ownership: plan.Ours, Digest: "d", Fields: "f", Status: apis.ObjectInProgress}
	other := ours
	other.UID = "u2"
	for name, test := range map[string]struct {
		leaving   apis.DeletePolicy
		suspended bool
		action    plan.Action
	}{
		"suspended": {apis.DeleteDelete, true, plan.ActionDelete},
		"held":      {apis.DeleteDelete, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Make(plan.Input{
				Suspended: test.suspended,
				Leaving:   map[plan.Key]apis.DeletePolicy{key: test.leaving},
				Desired:   []plan.Desired{{Key: waiting, Version: "v1", Digest: "d"}},
				Inventory: []apis.InventoryRecord{
					{Version: "v1", Kind: "Service", Namespace: "n", Name: "s", UID: "u", Digest: "d", Phase: apis.PhaseReady,
						DeletePolicy: apis.DeleteOrphan, PrunePolicy: apis.PruneAfter},
					{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "n", Name: "d", UID: "u2", Digest: "d", Fields: "f"},
				},
				Observed: map[plan.Key]plan.Observed{key: ours, waiting: other},
			})
			action := plan.Action("")
			if len(p.Next.Operations) > 0 {
				action = p.Next.Operations[0].Action
			}
			if action != test.action {
				t.Errorf("the plan is %+v, want the action %q", p, test.action)
			}
		})
	}
}
