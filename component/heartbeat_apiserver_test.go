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

// beat changes an object for the i-th time, as its controller: its status if it has one afterwards.
func beat(
	t *testing.T, c client.Client, object client.Object, i int, change func(u *unstructured.Unstructured, i int),
) {
	t.Helper()
	c = client.WithFieldOwner(c, "its-controller")
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
}

// beatUntil has an object beat several times a second, 60 times at least, until it has cost so much. It returns how
// long that took, and how many beats there were.
func beatUntil(
	t *testing.T, c client.Client, object client.Object, want int, cost func() int,
	change func(u *unstructured.Unstructured, i int),
) (took time.Duration, beats int) {
	t.Helper()
	start := time.Now()
	controlplanetest.Eventually(t, "heartbeats cost nothing", func(context.Context) error {
		beats++
		beat(t, c, object, beats, change)
		if n := cost(); n < want || beats < 60 {
			return fmt.Errorf("%d heartbeats cost %d", beats, n)
		}
		return nil
	})
	return time.Since(start), beats
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
		beat     func(u *unstructured.Unstructured, i int)
		// reads is how many there are in ten seconds at most. The next one comes when these are over.
		reads int
	}{
		"a custom resource": {`
apiVersion: test.espalier.dev/v1
kind: Widget
metadata: {name: beating}
`, readyWith("True"), 3},
		"a Deployment": {`
apiVersion: apps/v1
kind: Deployment
metadata: {name: beating}
spec:
  replicas: 0
  selector: {matchLabels: {app: beating}}
  template: {metadata: {labels: {app: beating}}, spec: {containers: [{name: server, image: server}]}}
`, func(u *unstructured.Unstructured, i int) {
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
`, touch, 0},
		"a ConfigMap": {`
apiVersion: v1
kind: ConfigMap
metadata: {name: beating}
`, touch, 0},
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
			controlplanetest.Eventually(t, "it is not created", func(ctx context.Context) error {
				return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
			})
			beat(t, c, object, 0, test.beat)
			controlplanetest.Eventually(t, "it is not ready", func(ctx context.Context) error {
				return hasState(ctx, c, assembly, apis.ComponentReady)
			})
			controlplanetest.Quiet(t, op.requests)
			count := func() int { return countOf(op.requests, "get", "/beating") }
			took, beats := beatUntil(t, c, object, test.reads, count, test.beat)
			controlplanetest.Rest(t, op.requests)
			reads, writes := count(), written(op.requests)
			t.Logf("%d heartbeats in %v cost %d reads and %d writes", beats, took, reads, writes)
			most := test.reads * max(1, int(took/(10*time.Second)))
			if reads > most || test.reads > 0 && took < 10*time.Second || writes > 0 {
				t.Errorf("%d heartbeats in %v cost %d reads and %d writes, want at most %d in 10s, and none: %s",
					beats, took, reads, writes, test.reads, op.requests)
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
	start := time.Now()
	_, beats := beatUntil(t, c, widget, 3, func() int { return written(op.requests) },
		func(u *unstructured.Unstructured, i int) { readyWith([]string{"False", "True"}[i%2])(u, i) })
	beat(t, c, widget, 0, readyWith("False"))
	controlplanetest.Eventually(t, "it is not said that it is not ready", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentProcessing)
	})
	beat(t, c, widget, 0, readyWith("True"))
	controlplanetest.Eventually(t, "it is not said that it is ready", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
	// Three changes are shown at once.
	writes, took := written(op.requests), time.Since(start)
	t.Logf("%d flips in %v cost %d writes: %s", beats+2, took, writes, op.requests)
	if most := 9 * (1 + int(took/time.Minute)); writes > most || took < firstDelay {
		t.Errorf("%d flips in %v cost %d writes, want at most %d, and the last after %v: %s",
			beats+2, took, writes, most, firstDelay, op.requests)
	}
}
