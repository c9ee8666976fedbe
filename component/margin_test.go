package component_test

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMarginHoldsNoWorker: the request that puts up a fence ends, and comes back when the margin is over. So does one
// of an operator that was restarted meanwhile.
func TestMarginHoldsNoWorker(t *testing.T) {
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	house, walls, _ := newHouse()
	house.SetObjects(definition, walls)
	deployed := rollOut(t, house, 0)
	node := assembling()
	node.FenceMargin = time.Minute
	o := newOperated(t, node, deployed.With(going).Object(), deployed.Objects())
	waits := func(when string, after, atLeast, atMost time.Duration) {
		t.Helper()
		result, err := o.reconcile(t, after)
		if err != nil || result.RequeueAfter < atLeast || result.RequeueAfter > atMost {
			t.Fatalf("%s: the next request is after %v: %v, want between %v and %v", when, result.RequeueAfter, err,
				atLeast, atMost)
		}
		message := o.house(t).Status.Conditions[0].Message
		if !strings.Contains(message, "creations that began before get time to end") {
			t.Errorf("%s: the condition says %q, want the margin", when, message)
		}
		live := &metav1.PartialObjectMetadata{TypeMeta: definition.TypeMeta}
		err = o.client.Get(t.Context(), client.ObjectKeyFromObject(definition), live)
		if err != nil || live.DeletionTimestamp != nil {
			t.Errorf("%s: the definition is deleted at %v: %v, want it left", when, live.DeletionTimestamp, err)
		}
	}
	waits("at first", time.Minute, time.Minute, 70*time.Second)
	waits("halfway", 30*time.Second, 25*time.Second, 40*time.Second)
	restarted := assembling()
	restarted.FenceMargin = time.Minute
	o.root.Reconciler = restarted
	waits("after a restart", 20*time.Second, 5*time.Second, 20*time.Second)
	for range 5 {
		if _, err := o.reconcile(t, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.client.Get(t.Context(), o.key, &resources.Assembly{}); !apierrs.IsNotFound(err) {
		t.Errorf("the read of the resource ends with %v, want it gone", err)
	}
}
