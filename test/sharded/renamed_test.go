package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/internal/testenv/sharder/sharderstest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A ring gets another name as docs/sharding.md says. The labels of the old one stay, and the new one assigns all
// objects. The Leases are those of the same Pods.
func TestARingIsRenamed(t *testing.T) {
	s := newScene(t, sharderstest.Start)
	before := &replicas{scene: s, of: s.replica("before", "", 15)}
	deleteRing := s.ring(before.of)
	names := []string{"shard-0", "shard-1"}
	for _, name := range names {
		before.start(name)
	}
	for i := range 12 {
		s.create(map[string]string{"color": "red", "parts": fmt.Sprint(i % 3)})
	}
	s.settle("by the ring of the first name")
	before.untilAssigned()
	before.leave()
	before.untilAssigned()
	before.leave()
	deleteRing()
	registered := &admissionregistrationv1.MutatingWebhookConfiguration{}
	controlplanetest.Eventually(t, "the webhook of the ring is still called", func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKey{Name: "controllerring-before"}, registered)
		if err == nil {
			return errors.New("its configuration is there")
		}
		return client.IgnoreNotFound(err)
	})

	after := &replicas{scene: s, of: s.replica("after", "", 15)}
	s.ring(after.of)
	s.change("w-0", map[string]string{"color": "blue", "parts": "3"})
	s.delete("w-1")
	for _, name := range names {
		after.start(name)
	}
	s.create(map[string]string{"color": "green", "parts": "1"})
	s.settle("by the ring of the second name")
	after.untilAssigned()

	for _, law := range broken(s.history.complete(t, s.Client)) {
		t.Error(law)
	}
	widgets := &resources.WidgetList{}
	labelled := client.HasLabels{sharder.ShardLabel("before")}
	if err := s.List(t.Context(), widgets, client.InNamespace(s.namespace), labelled); err != nil {
		t.Fatal(err)
	}
	if got, want := len(widgets.Items), 11; got != want {
		t.Errorf("%d Widgets have the label of the first ring, want %d", got, want)
	}
}
