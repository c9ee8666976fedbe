package espalier_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The function gets the objects that are there to stay, in the order of their names.
func TestYieldEach(t *testing.T) {
	names := stash.New[string]("test.espalier.dev/names")
	going := readyPart("one")
	going.DeletionTimestamp, going.Finalizers = &created, []string{"test.espalier.dev/other"}
	run(t, tests{
		"both are there": {
			Resource: widget.Object(), GivenObjects: []object{readyPart("two"), readyPart("one")},
			ExpectStashedValues: map[stash.Key]any{names.Key(): "one two"},
		},
		"one is terminating": {
			Resource: widget.Object(), GivenObjects: []object{readyPart("two"), going},
			ExpectStashedValues: map[stash.Key]any{names.Key(): "two"},
		},
		"none is desired": {
			Resource: widget.With(with("none")).Object(), ExpectStashedValues: map[stash.Key]any{names.Key(): nil},
		},
	}, func() node {
		return espalier.YieldEach(espalier.OwnsEach("Parts", desiredParts), names,
			func(live []*appsv1.Deployment) (string, error) {
				var all []string
				for _, part := range live {
					all = append(all, part.Name)
				}
				return strings.Join(all, " "), nil
			})
	})
}

// One tree serves many resources at once, and none sees the data of another.
func TestDataIsPerRequest(t *testing.T) {
	reads := espalier.Owns("source", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}, nil
	}).ReadOnly()
	var right, wrong atomic.Int32
	tree := espalier.Steps[*resources.Widget](
		espalier.Yield(reads, color, func(live *corev1.ConfigMap) (string, error) { return live.Name, nil }),
		espalier.Owns("reader", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			if color.RetrieveOrEmpty(ctx) == w.Name {
				right.Add(1)
			} else {
				wrong.Add(1)
			}
			return nil, nil
		}).Needs(color))

	expect := &rtesting.ExpectConfig{Scheme: scheme}
	var requests []reconcilers.Request
	for i := range 8 {
		w := widget.Object()
		w.Name, w.UID = fmt.Sprint("gadget-", i), types.UID(fmt.Sprint(i))
		requests = append(requests, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		expect.GivenObjects = append(expect.GivenObjects, w, palette.With(func(c *corev1.ConfigMap) { c.Name = w.Name }))
	}
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		Config: expect.Config(), Reconciler: tree, SkipStatusUpdate: true,
	}
	var all sync.WaitGroup
	for _, request := range requests {
		all.Go(func() {
			for range 20 {
				if _, err := root.Reconcile(context.Background(), request); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if all.Wait(); wrong.Load() != 0 || right.Load() != 160 {
		t.Errorf("%d requests saw their data and %d that of others, expected 160 and 0", right.Load(), wrong.Load())
	}
}

// Who calls a node without a root, and gives it no stash, gets an error that says so.
func TestL7NodesWithoutAStash(t *testing.T) {
	expect := rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []object{configMap.With(exists)}}
	config := expect.Config()
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), config), config)
	ctx = reconcilers.StashOriginalResourceType(reconcilers.StashResourceType(ctx, &resources.Widget{}), &resources.Widget{})
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(widget.Object())})
	for name, n := range map[string]node{
		"Yield": espalier.Yield(owns(), color, colorOf),
		"Reads": espalier.Reads("palette", settings, func(context.Context, *resources.Widget) types.NamespacedName {
			return client.ObjectKeyFromObject(configMap.Object())
		}),
		"Each": eachDatabase(),
		"Needs": espalier.Runs("Painter", func(context.Context, *resources.Widget) error { return nil }).
			Needs(color).Reports("Ready"),
	} {
		w := widget.Object()
		_, err := n.Reconcile(ctx, w)
		says := fmt.Sprint(err, w.Status.Conditions)
		if !strings.Contains(says, "context not configured for stashing") {
			t.Errorf("the error of %s and the conditions are %s, want one that says that there is no stash", name, says)
		}
	}
}
