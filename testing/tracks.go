package testing

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/tracker"
)

// TrackRequest is a request to be told about an object. Make one with [NewTrackRequest] or [CreateTrackRequest].
type TrackRequest struct {
	// Tracker is who wants to be told.
	Tracker types.NamespacedName

	// Tracked is what it wants to be told about, if TrackedReference is empty.
	//
	// Deprecated: use TrackedReference.
	//lint:ignore SA1019 Tables for older versions still set it.
	Tracked tracker.Key

	// TrackedReference is what it wants to be told about.
	TrackedReference tracker.Reference
}

// normalized returns the request with what it is about in TrackedReference only.
func (r TrackRequest) normalized() TrackRequest {
	ref := r.TrackedReference
	if ref.APIGroup == "" && ref.Kind == "" && ref.Namespace == "" && ref.Name == "" && ref.Selector == nil {
		r.TrackedReference = tracker.Reference{
			APIGroup:  r.Tracked.GroupKind.Group,
			Kind:      r.Tracked.GroupKind.Kind,
			Namespace: r.Tracked.NamespacedName.Namespace,
			Name:      r.Tracked.NamespacedName.Name,
		}
	}
	//lint:ignore SA1019 Tables for older versions still set it.
	r.Tracked = tracker.Key{}
	return r
}

// NewTrackRequest returns the request that t is tracked by b. It panics if the kind of t is not known.
func NewTrackRequest(t, b client.Object, scheme *runtime.Scheme) TrackRequest {
	tracked, by := realObject(t), realObject(b)
	kind, err := kindOf(tracked, scheme)
	if err != nil {
		panic(err)
	}
	return CreateTrackRequest(kind.Group, kind.Kind, tracked.GetNamespace(), tracked.GetName()).By(by.GetNamespace(), by.GetName())
}

type trackBy func(trackingObjNamespace, trackingObjName string) TrackRequest

// By returns the request of the named object.
func (f trackBy) By(trackingObjNamespace, trackingObjName string) TrackRequest {
	return f(trackingObjNamespace, trackingObjName)
}

// CreateTrackRequest returns a request for an object, to be completed with who asks:
//
//	CreateTrackRequest("", "ConfigMap", "default", "settings").By("default", "my-resource")
func CreateTrackRequest(trackedObjGroup, trackedObjKind, trackedObjNamespace, trackedObjName string) trackBy {
	return func(trackingObjNamespace, trackingObjName string) TrackRequest {
		return TrackRequest{
			TrackedReference: tracker.Reference{
				APIGroup: trackedObjGroup, Kind: trackedObjKind, Namespace: trackedObjNamespace, Name: trackedObjName,
			},
			Tracker: types.NamespacedName{Namespace: trackingObjNamespace, Name: trackingObjName},
		}
	}
}

// trackLease is how long a track lasts in a test that makes it outside of a root reconciler: longer than any test.
const trackLease = 24 * time.Hour

// trackList is what all views of a recording tracker append to.
type trackList struct {
	journal *journal

	mu       sync.Mutex
	requests []TrackRequest
}

func (l *trackList) add(request TrackRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, request)
	ref := request.TrackedReference
	l.journal.add(trackEntry + ref.Kind + " " + targetOf(ref.Namespace, cmp.Or(ref.Name, "*")))
}

func (l *trackList) all() []TrackRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// recordingTracker records what is asked of a tracker, whether or not it is accepted.
type recordingTracker struct {
	tracker.Tracker
	scheme *runtime.Scheme
	list   *trackList
}

var (
	_ tracker.Rounds        = (*recordingTracker)(nil)
	_ tracker.KindObservers = (*recordingTracker)(nil)
	_ tracker.Views         = (*recordingTracker)(nil)
)

// newRecordingTracker returns a tracker that already has the given requests, which it does not record.
func newRecordingTracker(scheme *runtime.Scheme, given []TrackRequest, journal *journal) (*recordingTracker, error) {
	t := &recordingTracker{Tracker: tracker.New(scheme, trackLease), scheme: scheme, list: &trackList{journal: journal}}
	for _, request := range given {
		request = request.normalized()
		by := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: request.Tracker.Namespace, Name: request.Tracker.Name},
		}
		if err := t.Tracker.TrackReference(request.TrackedReference, by); err != nil {
			return t, err
		}
	}
	return t, nil
}

// TrackReference implements [tracker.Tracker].
func (t *recordingTracker) TrackReference(ref tracker.Reference, obj client.Object) error {
	t.list.add(TrackRequest{
		Tracker:          types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		TrackedReference: ref,
	})
	return t.Tracker.TrackReference(ref, obj)
}

// TrackObject implements [tracker.Tracker]. A request for an object whose kind is not known is recorded without a kind.
func (t *recordingTracker) TrackObject(ref client.Object, obj client.Object) error {
	kind, err := kindOf(ref, t.scheme)
	if err != nil {
		kind = ref.GetObjectKind().GroupVersionKind()
	}
	t.list.add(TrackRequest{
		Tracker: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		TrackedReference: tracker.Reference{
			APIGroup: kind.Group, Kind: kind.Kind, Namespace: ref.GetNamespace(), Name: ref.GetName(),
		},
	})
	return t.Tracker.TrackObject(ref, obj)
}

// BeginRound implements [tracker.Rounds].
func (t *recordingTracker) BeginRound(obj client.Object) {
	if rounds, ok := t.Tracker.(tracker.Rounds); ok {
		rounds.BeginRound(obj)
	}
}

// EndRound implements [tracker.Rounds].
func (t *recordingTracker) EndRound(obj client.Object, complete bool) {
	if rounds, ok := t.Tracker.(tracker.Rounds); ok {
		rounds.EndRound(obj, complete)
	}
}

// Forget implements [tracker.Rounds].
func (t *recordingTracker) Forget(obj client.Object) {
	if rounds, ok := t.Tracker.(tracker.Rounds); ok {
		rounds.Forget(obj)
	}
}

// ObserversOfKind implements [tracker.KindObservers].
func (t *recordingTracker) ObserversOfKind(obj client.Object, watcher schema.GroupKind) ([]types.NamespacedName, error) {
	if narrow, ok := t.Tracker.(tracker.KindObservers); ok {
		return narrow.ObserversOfKind(obj, watcher)
	}
	return t.GetObservers(obj)
}

// InCluster implements [tracker.Views]. The view records too.
func (t *recordingTracker) InCluster(cluster any) tracker.Tracker {
	return &recordingTracker{Tracker: tracker.InCluster(t.Tracker, cluster), scheme: t.scheme, list: t.list}
}

// ForController implements [tracker.Views]. The view records too.
func (t *recordingTracker) ForController(name string) tracker.Tracker {
	return &recordingTracker{Tracker: tracker.ForController(t.Tracker, name), scheme: t.scheme, list: t.list}
}
