package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// latency is how long the event of a write takes to bring the resource back.
const latency = 5 * time.Millisecond

// virtualQueue makes the requests for one resource as the queue of controller-runtime would, in virtual time: after
// each event of the resource and of its ConfigMaps, after the delay of a result, and with the default back-off.
type virtualQueue struct {
	root    reconcile.Reconciler
	client  client.Client
	calls   *trace
	now     time.Time
	backoff workqueue.TypedRateLimiter[reconcilers.Request]
	// at are the times of the requests, as offsets from the start.
	at []time.Duration
	// next is the time of the next request; zero if there is none.
	next time.Time
}

// newVirtualQueue returns a queue for a root over the nodes, in a cluster with given objects in which reactors answer
// first.
func newVirtualQueue(node widgetNode, given []client.Object, reactors ...rtesting.ReactionFunc) (*virtualQueue, *rtesting.ExpectConfig) {
	q := &virtualQueue{
		calls: &trace{}, now: requestTime, next: requestTime,
		backoff: workqueue.DefaultTypedControllerRateLimiter[reconcilers.Request](),
	}
	expect := expectWidget(given...)
	expect.WithReactors = append([]rtesting.ReactionFunc{q.calls.observe, assignUID}, reactors...)
	config := expect.Config()
	q.client = config.Client
	q.root = &widgetRoot{Reconciler: node, Config: config}
	return q, expect
}

// run makes all requests of the next while.
func (q *virtualQueue) run(t *testing.T, while time.Duration) {
	t.Helper()
	for end := q.now.Add(while); ; {
		if q.next.IsZero() || q.next.After(end) {
			q.now = end
			return
		}
		q.now = q.next
		q.at = append(q.at, q.now.Sub(requestTime))
		if len(q.at) > 10_000 {
			t.Fatalf("there are %d requests and no end, want at most 10,000, the last at %v", len(q.at),
				q.at[len(q.at)-10:])
		}
		before := q.versions(t)
		result, err := q.root.Reconcile(rtime.StashNow(t.Context(), q.now), widgetRequest)
		q.next = time.Time{}
		//lint:ignore SA1019 the queue still knows it
		requeue := result.Requeue
		switch {
		case err != nil, result.RequeueAfter <= 0 && requeue:
			q.next = q.now.Add(q.backoff.When(widgetRequest))
		case result.RequeueAfter > 0:
			q.backoff.Forget(widgetRequest)
			q.next = q.now.Add(result.RequeueAfter)
		default:
			q.backoff.Forget(widgetRequest)
		}
		if q.versions(t) != before {
			q.wake(latency)
		}
	}
}

// wake makes a request after a while, unless there is one before.
func (q *virtualQueue) wake(after time.Duration) {
	if at := q.now.Add(after); q.next.IsZero() || at.Before(q.next) {
		q.next = at
	}
}

func (q *virtualQueue) versions(t *testing.T) string {
	t.Helper()
	// The trace shows no reads.
	var widgets resources.WidgetList
	var configMaps corev1.ConfigMapList
	text := ""
	for _, list := range []client.ObjectList{&widgets, &configMaps} {
		if err := q.client.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range widgets.Items {
		text += fmt.Sprintf("%s@%s ", widgets.Items[i].Name, widgets.Items[i].ResourceVersion)
	}
	for i := range configMaps.Items {
		text += fmt.Sprintf("%s@%s ", configMaps.Items[i].Name, configMaps.Items[i].ResourceVersion)
	}
	return text
}

// count returns how often a call was made.
func (q *virtualQueue) count(call string) int {
	n := 0
	for _, c := range q.calls.calls {
		if c == call {
			n++
		}
	}
	return n
}

// widget returns the resource.
func (q *virtualQueue) widget(t *testing.T) *resources.Widget {
	t.Helper()
	w := &resources.Widget{}
	if err := q.client.Get(t.Context(), widgetKey, w); err != nil {
		t.Fatal(err)
	}
	return w
}
