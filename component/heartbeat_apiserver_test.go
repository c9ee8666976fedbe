package component_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beat changes an object again and again for a while, as its controller: its status if it has one afterwards.
func beat(
	t *testing.T, object client.Object, every, during time.Duration, change func(u *unstructured.Unstructured, i int),
) {
	t.Helper()
	c := client.WithFieldOwner(live(t), "its-controller")
	for i, end := 0, time.Now().Add(during); i == 0 || time.Now().Before(end); i++ {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), u); err != nil {
			t.Fatal(err)
		}
		change(u, i)
		var err error
		if _, reports := u.Object["status"]; reports {
			err = c.Status().Update(t.Context(), u)
		} else {
			err = c.Update(t.Context(), u)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(every)
	}
}

// countOf returns how many requests of a verb there were about paths that end so.
func countOf(requests *controlplane.Requests, verb, suffix string) int {
	n := 0
	for request, count := range requests.Counts() {
		if request.Verb == verb && strings.HasSuffix(request.Path, suffix) {
			n += count
		}
	}
	return n
}

// readyWith sets the condition Ready of a Widget, and a text that is another one each time.
func readyWith(status string) func(u *unstructured.Unstructured, i int) {
	return func(u *unstructured.Unstructured, i int) {
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(),
			"conditions": []any{map[string]any{
				"type": "Ready", "status": status, "reason": "Beating", "message": fmt.Sprint("beat ", i),
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}
	}
}

// TestHeartbeats: an object that is ready and that its controller touches several times a second costs few reads. A
// change of its readiness is seen all the same.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	touch := func(u *unstructured.Unstructured, i int) {
		delete(u.Object, "status")
		setting(fmt.Sprint(i), "metadata", "annotations", "beat")(u)
	}
	for name, test := range map[string]struct {
		manifest string
		every    time.Duration
		beat     func(u *unstructured.Unstructured, i int)
		most     int
	}{
		"a custom resource": {`
apiVersion: test.espalier.dev/v1
kind: Widget
metadata: {name: beating}
`, 200 * time.Millisecond, readyWith("True"), 3},
		"a Deployment": {`
apiVersion: apps/v1
kind: Deployment
metadata: {name: beating}
spec:
  replicas: 0
  selector: {matchLabels: {app: beating}}
  template: {metadata: {labels: {app: beating}}, spec: {containers: [{name: server, image: server}]}}
`, 100 * time.Millisecond, func(u *unstructured.Unstructured, i int) {
			u.Object["status"] = map[string]any{
				"observedGeneration": u.GetGeneration(), "collisionCount": int64(i),
				"conditions": []any{
					map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
					map[string]any{"type": "Available", "status": "True"},
				},
			}
		}, 3},
		"a Service": {`
apiVersion: v1
kind: Service
metadata: {name: beating}
spec: {ports: [{port: 80}]}
`, 200 * time.Millisecond, touch, 0},
		"a ConfigMap": {`
apiVersion: v1
kind: ConfigMap
metadata: {name: beating}
`, 200 * time.Millisecond, touch, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			object := manifestOf(t, namespace, test.manifest)
			op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
			assembly := resources.NewAssembly(namespace, "all", object)
			if err := c.Create(t.Context(), assembly); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is not created", func(ctx context.Context) error {
				return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
			})
			beat(t, object, 0, time.Millisecond, test.beat)
			eventually(t, "it is not ready", func(ctx context.Context) error {
				return hasState(ctx, c, assembly, apis.ComponentReady)
			})
			controlplanetest.Quiet(t, op.requests)
			beat(t, object, test.every, 12*time.Second, test.beat)
			reads, writes := countOf(op.requests, "get", "/beating"), written(op.requests)
			t.Logf("a heartbeat each %v for 12 s costs %d reads and %d writes", test.every, reads, writes)
			if reads > test.most || writes > 0 {
				t.Errorf("a heartbeat each %v for 12 s costs %d reads and %d writes, want at most %d and none: %s",
					test.every, reads, writes, test.most, op.requests)
			}
		})
	}
}

// TestFlipsOnTheAPIServer: an object that becomes ready and not ready in turn, several times a second, costs few writes
// of the status. What it is in the end is shown.
func TestFlipsOnTheAPIServer(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	c, namespace := live(t), plane.Namespace(t)
	widget := manifestOf(t, namespace, `
apiVersion: test.espalier.dev/v1
kind: Widget
metadata: {name: beating}
`)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	assembly := resources.NewAssembly(namespace, "all", widget)
	assemble(t, c, assembly)("it is not ready")
	controlplanetest.Quiet(t, op.requests)
	beat(t, widget, 200*time.Millisecond, 12*time.Second, func(u *unstructured.Unstructured, i int) {
		readyWith([]string{"False", "True"}[i%2])(u, i)
	})
	writes := written(op.requests)
	t.Logf("flips each 200 ms for 12 s cost %d writes: %s", writes, op.requests)
	if writes == 0 || writes > 9 {
		t.Errorf("flips each 200 ms for 12 s cost %d writes, want 1 to 9: %s", writes, op.requests)
	}
	beat(t, widget, 0, time.Millisecond, readyWith("False"))
	eventually(t, "it is not said that it is not ready", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentProcessing)
	})
	beat(t, widget, 0, time.Millisecond, readyWith("True"))
	eventually(t, "it is not said that it is ready", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
}
