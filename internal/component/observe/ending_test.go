package observe_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func wantingEnding(in *observe.Interest) { in.Readiness, in.Ending = true, true }

func withStatusFields(fields string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		entry := managed("kube-controller-manager", metav1.ManagedFieldsOperationUpdate, "status", `{"f:status":`+fields+`}`)
		u.SetManagedFields(append(u.GetManagedFields(), entry))
	}
}

// TestEndingOfJobs: the event of its deletion says how a Job ended, also if a request finds first that it is gone.
func TestEndingOfJobs(t *testing.T) {
	completed := withStatusFields(`{"f:completionTime":{},"f:conditions":{}}`)
	failed := withStatusFields(`{"f:conditions":{},"f:failed":{}}`)
	running := withStatusFields(`{"f:active":{},"f:startTime":{}}`)
	foreign := func(u *unstructured.Unstructured) { u.SetLabels(nil) }
	untracked := func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }
	type change = func(*unstructured.Unstructured)
	for name, test := range map[string]struct {
		last []change
		want plan.Ending
	}{
		"completed":                  {[]change{completed, terminating}, plan.EndingCompleted},
		"completed, and deleted":     {[]change{completed}, plan.EndingCompleted},
		"failed":                     {[]change{failed, terminating}, plan.EndingFailed},
		"failed, and deleted":        {[]change{failed}, plan.EndingInterrupted},
		"running":                    {[]change{running}, plan.EndingInterrupted},
		"running, deleted in stages": {[]change{running, terminating}, plan.EndingInterrupted},
		"not begun":                  {nil, plan.EndingInterrupted},
		"without its fields":         {[]change{untracked}, plan.EndingUnknown},
		"taken over":                 {[]change{completed, foreign}, plan.EndingUnknown},
	} {
		for _, readFirst := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := newOffline(t)
				in := interest(jobs, "a", recorded("1"), wantingEnding)
				o.world["a"] = object(jobs, "a", "1", "10", running)
				o.observe(nil, in)
				o.live(jobs, "10", o.world["a"])
				o.observe([]string{"get a"}, in)
				last := object(jobs, "a", "1", "12", append([]change{}, test.last...)...)
				delete(o.world, "a")
				if readFirst {
					// The Job changes, is read, and is gone.
					o.Shown(jobs, object(jobs, "a", "1", "11", running))
					o.wakes("shop")
					o.presence(o.observe([]string{"get a"}, in), in, plan.PresenceUnknown)
				}
				o.Gone(jobs, last)
				o.wakes("shop")
				reads := []string{"get a"}
				if readFirst {
					reads = nil
				}
				got := o.presence(o.observe(reads, in), in, plan.Absent)
				digest := "d1"
				if test.want == plan.EndingUnknown && name != "without its fields" {
					digest = ""
				}
				if got.Ending != test.want || got.Digest != digest {
					t.Errorf("got ending %v of %q, want %v", got.Ending, got.Digest, test.want)
				}
				// Another Job of that name is not taken for it.
				o.Wrote(o.component, in, object(jobs, "a", "2", "13"))
				o.Listed(jobs, "14")
				if got := o.presence(o.observe([]string{"get a"}, in), in, plan.Absent); got.Ending != plan.EndingUnknown {
					t.Errorf("the ending of another one is %v, want %v", got.Ending, plan.EndingUnknown)
				}
			})
		}
	}
}

// TestEndingUnseen: if the watch is interrupted, it is not waited for an event that does not come.
func TestEndingUnseen(t *testing.T) {
	o := newOffline(t)
	in := interest(jobs, "a", recorded("1"), wantingEnding)
	shown := object(jobs, "a", "1", "10")
	o.observe(nil, in)
	o.live(jobs, "10", shown)
	o.presence(o.observe([]string{"get a"}, in), in, plan.PresenceUnknown)
	o.Interrupted(jobs)
	o.presence(o.observe(nil, in), in, plan.Absent)
	o.Opened(jobs)
	o.presence(o.observe(nil, in), in, plan.PresenceUnknown)
	o.wakes()
	o.Listed(jobs, "12")
	o.wakes("shop")
	o.presence(o.observe(nil, in), in, plan.Absent)
}
