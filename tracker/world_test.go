package tracker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/tracker"
)

// configMap returns a ConfigMap in the namespace "ns".
func configMap(name string, kv ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta("ns", name, kv...)}
}

// pod and secret return watchers of two kinds in the namespace "ns".
func pod(name string) *corev1.Pod       { return &corev1.Pod{ObjectMeta: objectMeta("ns", name)} }
func secret(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: objectMeta("ns", name)} }

func objectMeta(namespace, name string, kv ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for i := 0; i+1 < len(kv); i += 2 {
		if meta.Labels == nil {
			meta.Labels = map[string]string{}
		}
		meta.Labels[kv[i]] = kv[i+1]
	}
	return meta
}

// selecting refers to ConfigMaps in the namespace "ns" that the selector matches.
func selecting(t testing.TB, selector string) tracker.Reference {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return tracker.Reference{Kind: "ConfigMap", Namespace: "ns", Selector: parsed}
}

func names(names ...string) []types.NamespacedName {
	out := []types.NamespacedName{}
	for _, name := range names {
		out = append(out, types.NamespacedName{Namespace: "ns", Name: name})
	}
	return out
}

// clock is a clock that only moves when told to.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.offset.Load()) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// world is a tracker under test with what the tests keep asking of it.
type world struct {
	t testing.TB
	tracker.Tracker
	tracker.Rounds
}

func newWorld(t testing.TB, lease time.Duration) (world, *clock) {
	c := &clock{}
	track := tracker.New(clientgoscheme.Scheme, lease)
	tracker.SetClock(track, c.now)
	return in(t, track), c
}

// in returns the world as seen through a view.
func in(t testing.TB, track tracker.Tracker) world {
	return world{t: t, Tracker: track, Rounds: track.(tracker.Rounds)}
}

func (w world) track(ref, by client.Object) {
	w.t.Helper()
	if err := w.TrackObject(ref, by); err != nil {
		w.t.Fatalf("TrackObject: %v", err)
	}
}

func (w world) trackAll(ref tracker.Reference, by client.Object) {
	w.t.Helper()
	if err := w.TrackReference(ref, by); err != nil {
		w.t.Fatalf("TrackReference: %v", err)
	}
}

// round tracks the given ConfigMaps for the watcher within a round.
func (w world) round(by client.Object, complete bool, refs ...string) {
	w.t.Helper()
	w.BeginRound(by)
	for _, ref := range refs {
		w.track(configMap(ref), by)
	}
	w.EndRound(by, complete)
}

// want fails the test unless the watchers of obj are those with the given names.
func (w world) want(obj client.Object, want ...string) {
	w.t.Helper()
	got, err := w.GetObservers(obj)
	if err != nil {
		w.t.Fatalf("GetObservers: %v", err)
	}
	if diff := cmp.Diff(names(want...), got); diff != "" {
		w.t.Errorf("watchers of %s (-want, +got):\n%s", obj.GetName(), diff)
	}
}

// wantEmpty fails the test unless the tracker holds nothing at all.
func (w world) wantEmpty() {
	w.t.Helper()
	if diff := cmp.Diff(tracker.Size{}, w.Tracker.(tracker.Sizer).Size()); diff != "" {
		w.t.Errorf("size (-want, +got):\n%s", diff)
	}
	for what, n := range tracker.Held(w.Tracker) {
		if n != 0 {
			w.t.Errorf("%d %s are left", n, what)
		}
	}
}
