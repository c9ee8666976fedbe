package reconcilers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// undo has another client change the data of the child after each request, as long as it does not want it otherwise.
func (q *virtualQueue) undo(t *testing.T) {
	t.Helper()
	child := &corev1.ConfigMap{}
	if err := q.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "gadget-child"}, child); err != nil {
		t.Fatal(err)
	}
	if child.Data["color"] == "red" {
		return
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"red"}}`))
	if err := q.client.Patch(t.Context(), child, patch, client.FieldOwner("painter")); err != nil {
		t.Fatal(err)
	}
	q.wake(latency)
}

// fight runs requests, each of which another client undoes.
func (q *virtualQueue) fight(t *testing.T, while time.Duration) {
	t.Helper()
	for end := q.now.Add(while); q.now.Before(end); {
		q.run(t, 10*time.Millisecond)
		q.undo(t)
	}
}

// Another client keeps undoing what is desired. It is written back a few times at once, as often as somebody may edit it
// by hand, and then a few times a minute, until the other client leaves it alone.
func TestContestedChildIsWrittenWithDelays(t *testing.T) {
	for kind, who := range map[string]string{
		"updated": "another client or a webhook keeps changing /data/color",
		"applied": "another client or a webhook keeps changing .data.color",
	} {
		t.Run(kind, func(t *testing.T) {
			manager := flappingManagers()[kind]()
			q, recorder := flappingQueue(manager, func(time.Time) map[string]string {
				return map[string]string{"color": "blue"}
			})
			q.run(t, time.Second)
			created := q.writes()
			q.fight(t, 8*time.Second)
			// The writes of the other client are counted, too.
			if n := (q.writes() - created) / 2; n != 5 {
				t.Errorf("it is written back %d times in eight seconds, want 5, at %v", n, q.at)
			}
			before := q.writes()
			q.fight(t, 10*time.Minute)
			if n := (q.writes() - before) / 2; n < 2 || n > 7 {
				t.Errorf("it is written back %d times in the next ten minutes, want 2 to 7", n)
			}
			condition := q.widget(t).Status.GetCondition(resources.WidgetChildReady)
			want := who + " of ConfigMap default/gadget-child, which was written 5 times in five minutes; it is written back " +
				"with delays; one of both must leave it alone"
			if condition.Status == metav1.ConditionTrue || condition.Message != want {
				t.Errorf("the condition is %s and says %q, want that it is not True and says %q", condition.Status,
					condition.Message, want)
			}
			said := 0
			for range len(recorder.Events) {
				if event := <-recorder.Events; strings.HasPrefix(event, "Warning ContestedChild "+want) {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%d events say that it is contested, want 1", said)
			}
			q.run(t, 10*time.Minute)
			if c := q.widget(t).Status.GetCondition(resources.WidgetChildReady); c.Status != metav1.ConditionTrue {
				t.Errorf("the condition is %s ten minutes after the end, want True: %s", c.Status, c.Message)
			}
		})
	}
}
