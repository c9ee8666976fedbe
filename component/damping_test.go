package component_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// TestDampedStatus: an object that is not ready and that others change several times a second costs few writes of the
// status. The newest text is written when it may be shown.
func TestDampedStatus(t *testing.T) {
	house, _, _ := newHouse()
	house.SetObjects(deployment("web", "0", 2))
	o := newOperated(t, assembling(), house, nil)
	writes := 0
	reconcile := func(after time.Duration) time.Duration {
		t.Helper()
		result, err := o.reconcile(t, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range o.writes {
			if strings.HasPrefix(write, "update Assembly/status") {
				writes++
			}
		}
		return result.RequeueAfter
	}
	for range 4 {
		reconcile(0)
	}
	web := &appsv1.Deployment{}
	o.get(t, "web", web)
	web.Status.ObservedGeneration = web.Generation
	if err := o.client.Status().Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	var again time.Duration
	touch := func(i int) {
		t.Helper()
		web := &appsv1.Deployment{}
		web.Name = "web"
		o.change(t, web, func() { web.Spec.RevisionHistoryLimit = new(int32(i)) })
		again = reconcile(100 * time.Millisecond)
	}
	for i := range 600 {
		touch(i + 1)
	}
	if writes > 9 {
		t.Errorf("the status is written %d times in the first minute, want at most 9", writes)
	}
	if again <= 0 || again > time.Minute {
		t.Errorf("the request is repeated after %v, want at most a minute", again)
	}
	reconcile(again)
	o.get(t, "web", web)
	said := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready").Message
	if newest := fmt.Sprintf("generation %d", web.Generation); !strings.Contains(said, newest) {
		t.Errorf("the condition says %q after that, want %q in it", said, newest)
	}
}
