package testing_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestChangesOfConditions(t *testing.T) {
	isTrue := rtesting.IsTrue[*resources.Widget]
	made := rtesting.NewFixture(&resources.Widget{ObjectMeta: metav1.ObjectMeta{Name: "gadget", Generation: 3}}).With(
		isTrue("A", "Made"), rtesting.IsFalse[*resources.Widget]("B", "Broken", "it is broken"),
		rtesting.IsUnknown[*resources.Widget]("C", "Unseen"), isTrue("C", "Seen"), rtesting.Observed,
	).Object()
	want := []metav1.Condition{
		{Type: "A", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: 3},
		{Type: "B", Status: metav1.ConditionFalse, Reason: "Broken", Message: "it is broken", ObservedGeneration: 3},
		{Type: "C", Status: metav1.ConditionTrue, Reason: "Seen", ObservedGeneration: 3},
	}
	if diff := cmp.Diff(want, made.Status.Conditions, rtesting.IgnoreLastTransitionTime); diff != "" {
		t.Errorf("differs (-want, +got):\n%s", diff)
	}
	if made.Status.ObservedGeneration != 3 {
		t.Errorf("the observed generation is %d", made.Status.ObservedGeneration)
	}
	initialized := rtesting.NewFixture(&resources.Widget{}).With(rtesting.Initialized).Object()
	if len(initialized.Status.Conditions) == 0 {
		t.Error("want conditions of a new resource")
	}
	leaving := settings.With(rtesting.Terminating[*corev1.ConfigMap]("example.com/a")).Object()
	if leaving.DeletionTimestamp == nil || len(leaving.Finalizers) != 1 {
		t.Errorf("got %v", leaving)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "*v1.ConfigMap has no field Status.Conditions") {
			t.Errorf("got %q", text)
		}
	}()
	settings.With(rtesting.IsTrue[*corev1.ConfigMap]("A", "Made"))
}

// An expected event about an object has the kind that the scheme has for it, in any form of the object.
func TestEventsRegardObjects(t *testing.T) {
	c := &rtesting.ExpectConfig{Scheme: scheme, ExpectEvents: []rtesting.Event{
		rtesting.Normal(settings, "Made", "100%"), rtesting.Warning(&die{built: settings.Object()}, "Lost", "it"),
	}}
	c.Config().Recorder.Event(settings.Object(), "Normal", "Made", "100%")
	c.Config().Recorder.Event(settings.Object(), "Warning", "Lost", "it")
	c.AssertExpectations(t)

	unknown := &rtesting.ExpectConfig{Scheme: scheme, ExpectEvents: []rtesting.Event{
		rtesting.Normal(&resources.Widget{}, "Made", ""),
	}}
	unknown.AssertExpectations(nil)
	if got := strings.Join(unknown.Failures(), "\n"); !strings.Contains(got, "ExpectEvents[0] cannot be compared: ") {
		t.Errorf("got %s", got)
	}
	node := does(func(ctx context.Context, c *corev1.ConfigMap) error {
		reconcilers.RetrieveConfigOrDie(ctx).Recorder.Event(c, "Normal", "Made", "it")
		return nil
	})
	runNode(t, cmTests{"row": {
		Resource: settings.Object(), Metadata: node,
		ExpectEvents: []rtesting.Event{rtesting.Normal(settings, "Made", "it")},
	}})
}
