package plan_test

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// TestJobsThatExpire shows what is done about a Job that deletes itself, by its record and by what was seen of it.
func TestJobsThatExpire(t *testing.T) {
	absent := plan.Observed{Presence: plan.Absent}
	seen := func(ending plan.Ending, digest string) plan.Observed {
		return plan.Observed{Presence: plan.Absent, Ending: ending, Digest: digest}
	}
	terminating := func(ending plan.Ending) plan.Observed {
		return plan.Observed{Presence: plan.Present, UID: "u1", Ownership: plan.Ours, Terminating: true, Digest: "1", Ending: ending}
	}
	ready, creating, updating := apis.PhaseReady, apis.PhaseCreating, apis.PhaseUpdating
	scheduled, recreating := apis.PhaseScheduledForApplication, apis.PhaseRecreating
	completed := apis.PhaseCompleted
	never := func(r *apis.InventoryRecord) { r.UID = "" }
	failed := func(r *apis.InventoryRecord) { r.Status, r.Message = apis.ObjectFailed, "BackoffLimitExceeded" }
	const waiting = "waiting job: it is being deleted"
	for name, test := range map[string]struct {
		phase    apis.InventoryPhase
		record   func(*apis.InventoryRecord)
		observed plan.Observed
		want     string
		obstacle string
		after    apis.InventoryPhase
	}{
		"completed":                       {creating, nil, seen(plan.EndingCompleted, "1"), "", "", completed},
		"completed, was ready":            {ready, nil, seen(plan.EndingCompleted, "1"), "", "", completed},
		"completed, not recorded":         {scheduled, never, seen(plan.EndingCompleted, "1"), "", "", completed},
		"completed for another state":     {scheduled, nil, seen(plan.EndingCompleted, "0"), "create job", "", scheduled},
		"completed, going":                {creating, nil, terminating(plan.EndingCompleted), "", "", completed},
		"failed":                          {creating, nil, seen(plan.EndingFailed, "1"), "", "failed job: it failed and is gone; it is run again when its manifest changes", creating},
		"failed, known why":               {creating, failed, seen(plan.EndingFailed, "1"), "", "failed job: BackoffLimitExceeded", creating},
		"failed, going":                   {creating, failed, terminating(plan.EndingFailed), "", "failed job: BackoffLimitExceeded", creating},
		"failed, unseen":                  {creating, failed, absent, "", "failed job: BackoffLimitExceeded", creating},
		"failed for another state":        {scheduled, nil, seen(plan.EndingFailed, "0"), "create job", "", scheduled},
		"failed, deleted by somebody":     {creating, failed, seen(plan.EndingInterrupted, "1"), "create job", "", creating},
		"interrupted":                     {creating, nil, seen(plan.EndingInterrupted, "1"), "create job", "", creating},
		"interrupted, going":              {creating, nil, terminating(plan.EndingInterrupted), "", waiting, creating},
		"unseen":                          {creating, nil, absent, "", "", completed},
		"unseen, updated":                 {updating, nil, absent, "", "", completed},
		"unseen, was ready":               {ready, nil, absent, "", "", completed},
		"unseen, going":                   {creating, nil, terminating(plan.EndingUnknown), "", waiting, creating},
		"unseen, another state":           {scheduled, nil, absent, "create job", "", scheduled},
		"unseen, never created":           {scheduled, never, absent, "create job", "", scheduled},
		"unseen, deleted to be recreated": {recreating, nil, absent, "create job", "", recreating},
		"not known yet":                   {creating, nil, plan.Observed{}, "", "waiting job: it is not known yet whether it exists", creating},
		"was completed":                   {completed, never, absent, "", "", completed},
	} {
		t.Run(name, func(t *testing.T) {
			d := plan.Desired{Key: plan.Key{Group: "batch", Kind: "Job", Namespace: "app", Name: "job"}, Version: "v1", Digest: "1", Expires: true}
			r := asIs(d)
			r.Phase = test.phase
			if test.record != nil {
				test.record(&r)
			}
			in := single(d, &r, test.observed)
			p := plan.Make(in)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			same(t, "operations", actions(p), want)
			if shown := obstacles(p); test.obstacle == "" && len(shown) > 0 || test.obstacle != "" && !slices.Equal(shown, []string{test.obstacle}) {
				t.Errorf("obstacles are %q, want %q", shown, test.obstacle)
			}
			if p.Done != (test.want == "" && test.obstacle == "") {
				t.Errorf("done is %v, want %v", p.Done, !p.Done)
			}
			if phase := p.Inventory[0].Phase; phase != test.after {
				t.Errorf("the phase is %s, want %s", phase, test.after)
			}
			// The same is decided from the record that was made of it.
			if in.Inventory = p.Inventory; len(p.Next.Operations) == 0 {
				same(t, "operations later", actions(plan.Make(in)), nil)
				in.Desired[0].Digest = "2"
				in.Observed[d.Key] = plan.Observed{Presence: plan.Absent, Ending: test.observed.Ending, Digest: test.observed.Digest}
				same(t, "operations for another state", actions(plan.Make(in)), []string{"create job"})
			}
		})
	}
}

// TestOnceOfNamespaces: what is in a namespace that is gone for good does not wait for it for ever.
func TestOnceOfNamespaces(t *testing.T) {
	n, inside := namespace("app"), configMap("c")
	n.Digest = plan.DigestOnce
	record := asIs(n)
	p := plan.Make(plan.Input{
		Desired: []plan.Desired{n, inside}, Inventory: []apis.InventoryRecord{record}, Now: start,
		Observed: map[plan.Key]plan.Observed{n.Key: {Presence: plan.Absent}, inside.Key: {Presence: plan.Absent}},
	})
	same(t, "operations", actions(p), []string{"create c"})
}
