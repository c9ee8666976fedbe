package testing

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/tracker"
)

// TrackRequest is a request to track an object. Make one with [NewTrackRequest] or [CreateTrackRequest].
type TrackRequest struct {
	// Tracker is the object that watches.
	Tracker types.NamespacedName

	// Tracked is the tracked object, if TrackedReference is empty.
	//
	// Deprecated: use TrackedReference.
	//lint:ignore SA1019 Tables for older versions still set it.
	Tracked tracker.Key

	// TrackedReference refers to the tracked objects.
	TrackedReference tracker.Reference
}

// normalized returns the request with TrackedReference instead of Tracked.
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
	tracked, by := objects.Copy(t), objects.Copy(b)
	kind, err := objects.KindOf(tracked, scheme)
	if err != nil {
		panic(err)
	}
	return CreateTrackRequest(kind.Group, kind.Kind, tracked.GetNamespace(), tracked.GetName()).
		By(by.GetNamespace(), by.GetName())
}

type trackBy func(trackingObjNamespace, trackingObjName string) TrackRequest

// By returns the request of the named object.
func (f trackBy) By(trackingObjNamespace, trackingObjName string) TrackRequest {
	return f(trackingObjNamespace, trackingObjName)
}

// CreateTrackRequest returns a request for an object, to be completed with the object that watches:
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

// tracksGiven returns the tracks that requests ask for.
func tracksGiven(given []TrackRequest) []recording.Track {
	var tracks []recording.Track
	for _, request := range given {
		tracks = append(tracks, recording.Track{Watcher: request.Tracker, Ref: request.normalized().TrackedReference})
	}
	return tracks
}

// tracksOf returns the requests that a tracker recorded.
func tracksOf(t *recording.Tracker) []TrackRequest {
	var requests []TrackRequest
	for _, track := range t.Requests() {
		requests = append(requests, TrackRequest{Tracker: track.Watcher, TrackedReference: track.Ref})
	}
	return requests
}
