package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// Each line of the table of assess, and what it makes of a component that was ready.
func TestLook(t *testing.T) {
	ready := apis.InventoryRecord{
		Version: "v1", Kind: "Thing", Name: "a", UID: "1", Digest: "d", Fields: "f", Phase: apis.PhaseReady,
	}
	present := plan.Observed{
		Presence: plan.Present, UID: "1", Ownership: plan.Ours, Fields: "f", Status: apis.ObjectCurrent,
	}
	gone := plan.Observed{Presence: plan.Absent}
	type (
		record   = apis.InventoryRecord
		observed = plan.Observed
	)
	const keeps, processing, failed = apis.ComponentReady, apis.ComponentProcessing, apis.ComponentError
	for name, tc := range map[string]struct {
		record   func(*record)
		settings generator.Settings
		observed observed
		change   func(*observed)
		want     string
		state    apis.ComponentState
	}{
		"ready":        {observed: present, want: "Ready", state: keeps},
		"not readable": {want: "Ready", state: keeps},
		"gone":         {observed: gone, want: "Ready NotFound it is gone", state: processing},
		"gone, to be removed": {
			record: func(r *record) { r.Digest = "" }, observed: gone, want: "Ready NotFound it is gone", state: keeps,
		},
		"gone, to be purged": {
			record:   func(r *record) { r.Phase = apis.PhaseCompleting },
			observed: gone, want: "Completing NotFound it is gone", state: keeps,
		},
		"gone, written once": {
			record:   func(r *record) { r.ReconcilePolicy = apis.ReconcileOnce },
			observed: gone, want: "Completed", state: keeps,
		},
		"a Job that is gone": {
			record:   func(r *record) { r.Group, r.Kind = "batch", "Job" },
			observed: gone, want: "Completed", state: keeps,
		},
		"a Job that is gone too early": {
			record:   func(r *record) { r.Group, r.Kind, r.Phase = "batch", "Job", apis.PhaseCreating },
			observed: gone, want: "Creating NotFound it is gone", state: processing,
		},
		"not served": {
			observed: gone, change: func(o *observed) { o.TypeMissing = true },
			want: "Ready NotFound the cluster does not serve its type", state: processing,
		},
		"being deleted": {
			observed: present, change: func(o *observed) { o.Terminating, o.Deletion = true, "is being deleted" },
			want: "Ready Terminating it is being deleted", state: processing,
		},
		"of others": {
			observed: present, change: func(o *observed) { o.Ownership, o.Claim = plan.Foreign, "belongs to b" },
			want: "Ready Unknown it belongs to b", state: processing,
		},
		"without marks": {
			observed: present, change: func(o *observed) { o.Ownership = plan.Unowned },
			want: "Ready Unknown it has no marks of the component", state: processing,
		},
		"edited": {
			observed: present, change: func(o *observed) { o.Fields = "g" },
			want: "Ready others have changed it", state: processing,
		},
		"edited where that is ignored": {
			settings: generator.Settings{IgnoreFields: []string{"/spec"}},
			observed: present, change: func(o *observed) { o.Fields = "g" }, want: "Ready", state: keeps,
		},
		"without field sets": {
			record: func(r *record) { r.Fields = plan.FieldsNone }, observed: present, want: "Ready", state: keeps,
		},
		"not written yet": {
			record:   func(r *record) { r.Phase, r.Status = apis.PhaseScheduledForApplication, apis.ObjectInProgress },
			observed: present, want: "ScheduledForApplication InProgress", state: keeps,
		},
		"ready later": {
			record:   func(r *record) { r.Phase, r.Status = apis.PhaseCreating, apis.ObjectInProgress },
			observed: present, want: "Ready", state: keeps,
		},
		"not ready": {
			observed: present, change: func(o *observed) { o.Status, o.Message = apis.ObjectInProgress, "0 of 1" },
			want: "Ready InProgress 0 of 1", state: processing,
		},
		"failed": {
			observed: present, change: func(o *observed) { o.Status, o.Message = apis.ObjectFailed, "it crashes" },
			want: "Ready Failed it crashes", state: failed,
		},
		"auxiliary, and not ready": {
			settings: generator.Settings{Participation: generator.ParticipationAuxiliary},
			observed: present, change: func(o *observed) { o.Status, o.Message = apis.ObjectInProgress, "0 of 1" },
			want: "Ready InProgress 0 of 1", state: keeps,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := ready, tc.observed
			if tc.record != nil {
				tc.record(&r)
			}
			if tc.change != nil {
				tc.change(&o)
			}
			l := &look{settings: map[objectKey]generator.Settings{recordKey(&r): tc.settings}}
			l.assess(&r, &o)
			status := &apis.ComponentStatus{State: apis.ComponentReady, Inventory: []record{r}}
			l.conclude(status, 1, time.Time{})
			words := slices.DeleteFunc([]string{string(r.Phase), string(r.Status), r.Message}, func(s string) bool { return s == "" })
			if got := strings.Join(words, " "); got != tc.want || status.State != tc.state {
				t.Errorf("the record says %q and the component is %s, want %q and %s", got, status.State, tc.want, tc.state)
			}
		})
	}
}
