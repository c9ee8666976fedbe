package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// die is a builder of a ConfigMap: it says nothing of itself, and its copy is the object that it builds.
type die struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	built *corev1.ConfigMap
}

var _ client.Object = (*die)(nil)

func (d *die) DeepCopyObject() runtime.Object { return d.built.DeepCopyObject() }

// Events on a builder are about the object that it builds, in both recorders and in expectations.
func TestEventsSeeThroughBuilders(t *testing.T) {
	built := &die{built: settings.Object()}
	records := does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		c.Recorder.Event(built, corev1.EventTypeNormal, "Old", "of a builder")
		c.Eventf(built, built, corev1.EventTypeNormal, "New", "Acted", "of a builder")
		return nil
	})
	expected := func(obj client.Object) []rtesting.Event {
		return []rtesting.Event{
			rtesting.NewEvent(obj, scheme, corev1.EventTypeNormal, "Old", "of a builder"),
			rtesting.NewEventf(obj, obj, scheme, corev1.EventTypeNormal, "New", "Acted", "of a builder"),
		}
	}
	runNode(t, cmTests{
		"expected on the object":  {Resource: settings.Object(), Metadata: records, ExpectEvents: expected(settings.Object())},
		"expected on the builder": {Resource: settings.Object(), Metadata: records, ExpectEvents: expected(built)},
		"order": {
			Resource: settings.Object(), Metadata: records, ExpectEvents: expected(built),
			ExpectOrder: []string{"event Old ConfigMap default/settings", "event New ConfigMap default/settings"},
		},
	})
}

// An event about nothing is recorded with the reason: it must not end the code under test.
func TestEventsAboutNothingAreRecorded(t *testing.T) {
	c := &rtesting.ExpectConfig{Scheme: scheme}
	c.Config().Eventf((*corev1.ConfigMap)(nil), nil, corev1.EventTypeNormal, "New", "Acted", "note")
	c.Config().Eventf(nil, nil, corev1.EventTypeNormal, "New", "Acted", "note")
	c.AssertExpectations(nil)
	if failures := c.Failures(); len(failures) != 2 {
		t.Errorf("want 2 failures, got %q", failures)
	}
}
