package testing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

func TestTracksAreRecordedAndGiven(t *testing.T) {
	other := rtesting.CreateTrackRequest("", "ConfigMap", "default", "settings").By("default", "other")
	c := newExpectConfig()
	c.GivenTracks = []rtesting.TrackRequest{other}
	invalid := tracker.Reference{Kind: "ConfigMap"}
	byName := types.NamespacedName{Namespace: "default", Name: "settings"}
	c.ExpectTracks = []rtesting.TrackRequest{
		// The deprecated way to say it.
		{
			Tracker: types.NamespacedName{Namespace: "default", Name: "web"},
			//lint:ignore SA1019 Tables for older versions still set it.
			Tracked: tracker.NewKey(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, byName),
		},
		{Tracker: types.NamespacedName{Namespace: "default", Name: "web"}, TrackedReference: invalid},
		{
			Tracker:          types.NamespacedName{Namespace: "default", Name: "web"},
			TrackedReference: tracker.Reference{Kind: "Secret", Selector: labels.Everything()},
		},
	}
	config := c.Config()
	if err := config.Tracker.TrackObject(settings.Object(), pod.Object()); err != nil {
		t.Fatal(err)
	}
	if err := config.Tracker.TrackReference(invalid, pod.Object()); err == nil {
		t.Error("want an error")
	}
	view := tracker.ForController(tracker.InCluster(config.Tracker, "home"), "me")
	if err := view.TrackReference(tracker.Reference{Kind: "Secret", Selector: labels.Everything()}, pod.Object()); err != nil {
		t.Fatal(err)
	}
	c.AssertExpectations(t)

	observers, err := config.Tracker.GetObservers(settings.Object())
	if err != nil {
		t.Fatal(err)
	}
	want := []types.NamespacedName{{Namespace: "default", Name: "other"}, {Namespace: "default", Name: "web"}}
	if diff := cmp.Diff(want, observers); diff != "" {
		t.Errorf("observers differ (-want, +got):\n%s", diff)
	}
}

func TestRoundsOfTheTrackerWork(t *testing.T) {
	config := newExpectConfig().Config()
	rounds := config.Tracker.(tracker.Rounds)
	observers := func() []types.NamespacedName {
		found, err := config.Tracker.(tracker.KindObservers).ObserversOfKind(settings.Object(), schema.GroupKind{Kind: "Pod"})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, asks := range []bool{true, false} {
		rounds.BeginRound(podOfKind())
		if asks {
			if err := config.Tracker.TrackObject(settings.Object(), podOfKind()); err != nil {
				t.Fatal(err)
			}
		}
		rounds.EndRound(podOfKind(), true)
		if got := len(observers()); (got == 1) != asks {
			t.Errorf("tracked %v, got %d observers", asks, got)
		}
	}
	if err := config.Tracker.TrackObject(settings.Object(), podOfKind()); err != nil {
		t.Fatal(err)
	}
	rounds.Forget(podOfKind())
	if got := observers(); len(got) != 0 {
		t.Errorf("forgotten, got %v", got)
	}
}

func podOfKind() client.Object {
	return pod.With(func(p *corev1.Pod) { p.APIVersion, p.Kind = "v1", "Pod" }).Object()
}

func TestRequestsForDucksHaveTheirKind(t *testing.T) {
	duck := &portion{}
	duck.APIVersion, duck.Kind, duck.Name = "example.com/v1", "Thing", "thing"
	want := rtesting.CreateTrackRequest("example.com", "Thing", "", "thing").By("default", "web")
	if diff := rtesting.DefaultDiffer.TrackRequest(want, rtesting.NewTrackRequest(duck, pod, scheme)); diff != "" {
		t.Error(diff)
	}
	if got := rtesting.NewDeleteRefFromObject(duck, scheme); got.Group != "example.com" || got.Kind != "Thing" {
		t.Errorf("got %+v", got)
	}
}

func TestUnknownKindsInATablePanic(t *testing.T) {
	unknown := &stranger{}
	for name, f := range map[string]func(){
		"NewDeleteRefFromObject": func() { rtesting.NewDeleteRefFromObject(unknown, scheme) },
		"NewTrackRequest":        func() { rtesting.NewTrackRequest(unknown, pod, scheme) },
		"NewEvent":               func() { rtesting.NewEvent(unknown, scheme, "", "", "") },
		"NewEventf":              func() { rtesting.NewEventf(pod, unknown, scheme, "", "", "", "") },
		"InduceFailure": func() {
			rtesting.InduceFailure("get", "Pod", rtesting.InduceFailureOpts{}, rtesting.InduceFailureOpts{})
		},
		"AddGiven": func() { newExpectConfig().Config().Client.(rtesting.TestClient).AddGiven(unknown) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: want a panic", name)
				}
			}()
			f()
		}()
	}
}

func TestEventsOfUnknownObjectsAreSeen(t *testing.T) {
	c := newExpectConfig()
	c.Config().Recorder.Event(&stranger{}, "Normal", "Seen", "")
	c.Config().Recorder.AnnotatedEventf(&stranger{}, nil, "Normal", "Seen", "%s", "it")
	c.Config().Eventf(client.Object(&stranger{}), nil, "Normal", "Seen", "Look", "")
	c.AssertExpectations(nil)
	if got := len(c.Failures()); got != 3 {
		t.Errorf("want 3 unexpected events, got %d", got)
	}
}
