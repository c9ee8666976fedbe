package component_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writesOf keeps the writes of one kind, with their reasons.
type writesOf struct {
	kind  string
	mu    sync.Mutex
	texts []string
}

func (w *writesOf) Start(ctx context.Context, _ *reconcilers.Node) context.Context { return ctx }

func (w *writesOf) End(context.Context, *reconcilers.Node, reconcilers.Outcome) {}

func (w *writesOf) Note(_ context.Context, _ *reconcilers.Node, fact any) {
	write, ok := fact.(reconcilers.Write)
	if !ok || write.Object.Kind != w.kind {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, write.Verb+": "+write.Reason)
}

// TestWritesOfAStatefulSetHaveTheirReasons: what the API server completes in the claims of a StatefulSet, or keeps in
// another way, is no reason to write it, neither after a change nor after a restart.
func TestWritesOfAStatefulSetHaveTheirReasons(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	labels := map[string]any{"app": "data"}
	database := func(image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet",
			"metadata": map[string]any{"namespace": namespace, "name": "data"},
			"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"matchLabels": labels}, "serviceName": "data",
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
				},
				"volumeClaimTemplates": []any{map[string]any{
					"metadata": map[string]any{"name": "disk"},
					"spec": map[string]any{
						"accessModes": []any{"ReadWriteOnce"},
						"resources":   map[string]any{"requests": map[string]any{"storage": "1024Mi"}},
					},
				}},
			},
		}}
	}
	told := &writesOf{kind: "StatefulSet"}
	start := func() *operator {
		return startComponents(t, plane.Config(t), namespace, assemblyOptions{},
			func(config *reconcilers.Config) { *config = config.WithObserver(told) })
	}
	op := start()
	assembly := resources.NewAssembly(namespace, "all", database("x:1"))
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	ready := func(image string) func(context.Context) error {
		return func(ctx context.Context) error {
			set := &appsv1.StatefulSet{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data"}, set); err != nil {
				return err
			}
			if got := set.Spec.Template.Spec.Containers[0].Image; got != image {
				return fmt.Errorf("the image is %s, not %s", got, image)
			}
			if set.Status.ObservedGeneration != set.Generation {
				set.Status.ObservedGeneration = set.Generation
				if err := c.Status().Update(ctx, set); err != nil {
					return err
				}
			}
			return hasState(ctx, c, assembly, apis.ComponentReady)
		}
	}
	controlplanetest.Eventually(t, "it is not deployed", ready("x:1"))
	op.stop()
	start()
	assembly.SetObjects(database("x:2"), partOf(namespace, "part", "0"))
	if err := c.Update(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the change is not rolled out", ready("x:2"))
	told.mu.Lock()
	defer told.mu.Unlock()
	want := []string{"create: it does not exist", "apply: its desired state changed"}
	if !slices.Equal(told.texts, want) {
		t.Errorf("the StatefulSet is written %q, want %q", told.texts, want)
	}
}
