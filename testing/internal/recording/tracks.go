package recording

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/tracker"
)

// TrackLease is how long a reference lasts that is made outside of a root reconciler: longer than any test.
const TrackLease = 24 * time.Hour

// Track is a request to a tracker.
type Track struct {
	Ref     tracker.Reference
	Watcher types.NamespacedName
}

// fullTracker is what [tracker.New] returns.
type fullTracker interface {
	tracker.Tracker
	tracker.Rounds
	tracker.KindObservers
	tracker.Views
}

// Tracker records the requests to a tracker, accepted or not.
type Tracker struct {
	fullTracker
	scheme *runtime.Scheme
	tracks *tracks
}

// tracks is what all views of a Tracker append to.
type tracks struct {
	journal *Journal

	mu       sync.Mutex
	requests []Track
}

// NewTracker returns a tracker that keeps the order of requests in the journal too.
func NewTracker(scheme *runtime.Scheme, journal *Journal) *Tracker {
	return &Tracker{tracker.New(scheme, TrackLease).(fullTracker), scheme, &tracks{journal: journal}}
}

// Give makes requests without recording them, until one fails.
func (t *Tracker) Give(tracks ...Track) error {
	for _, track := range tracks {
		watcher := &metav1.PartialObjectMetadata{}
		watcher.SetNamespace(track.Watcher.Namespace)
		watcher.SetName(track.Watcher.Name)
		if err := t.fullTracker.TrackReference(track.Ref, watcher); err != nil {
			return err
		}
	}
	return nil
}

// Requests returns the recorded requests.
func (t *Tracker) Requests() []Track {
	t.tracks.mu.Lock()
	defer t.tracks.mu.Unlock()
	return slices.Clone(t.tracks.requests)
}

func (t *Tracker) record(ref tracker.Reference, watcher client.Object) {
	t.tracks.mu.Lock()
	defer t.tracks.mu.Unlock()
	t.tracks.requests = append(t.tracks.requests, Track{Ref: ref, Watcher: client.ObjectKeyFromObject(watcher)})
	t.tracks.journal.add(trackPrefix + ref.Kind + " " + objects.Path(ref.Namespace, cmp.Or(ref.Name, "*")))
}

// TrackReference implements [tracker.Tracker].
func (t *Tracker) TrackReference(ref tracker.Reference, obj client.Object) error {
	t.record(ref, obj)
	return t.fullTracker.TrackReference(ref, obj)
}

// TrackObject implements [tracker.Tracker]. A request for an object whose kind is not known is recorded without a kind.
func (t *Tracker) TrackObject(ref client.Object, obj client.Object) error {
	kind, err := objects.KindOf(ref, t.scheme)
	if err != nil {
		kind = ref.GetObjectKind().GroupVersionKind()
	}
	t.record(tracker.Reference{
		APIGroup: kind.Group, Kind: kind.Kind, Namespace: ref.GetNamespace(), Name: ref.GetName(),
	}, obj)
	return t.fullTracker.TrackObject(ref, obj)
}

// InCluster implements [tracker.Views]. The view records too.
func (t *Tracker) InCluster(cluster any) tracker.Tracker {
	return &Tracker{t.fullTracker.InCluster(cluster).(fullTracker), t.scheme, t.tracks}
}

// ForController implements [tracker.Views]. The view records too.
func (t *Tracker) ForController(name string) tracker.Tracker {
	return &Tracker{t.fullTracker.ForController(name).(fullTracker), t.scheme, t.tracks}
}
