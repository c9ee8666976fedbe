package informer

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// Definitions are the resources that make an API server serve types. Only their metadata is watched: an event says when
// to ask, and the API server then says what it serves.
var Definitions = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	apiServices,
}

// apiServices name other API servers. An API server that does not serve them answers for itself alone.
var apiServices = schema.GroupVersionResource{
	Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
}

// watchAgain is after which time a watch of definitions that was refused is tried again, if a kind is needed then.
const watchAgain = 10 * time.Minute

// watch watches a resource of definitions until ctx is done, or there are none. It keeps nothing of them.
func (k *Kinds) watch(ctx context.Context, of schema.GroupVersionResource) {
	backoff := WatchBackoff
	events := Events{
		Replaced: func(objects []any, _ string) error {
			backoff = WatchBackoff
			k.setWatched(of, true)
			k.changed(objects, func(kind *Kind, names []string) {
				// What changed before is not known.
				if kind.isServed() || slices.ContainsFunc(names, func(n string) bool { return kind.definedBy(of, n) }) {
					kind.refresh()
				}
			})
			return nil
		},
		Shown: func(object any, deleted bool) error {
			definition, ok := object.(*metav1.PartialObjectMetadata)
			stays := ok && !deleted && definition.DeletionTimestamp.IsZero()
			k.changed([]any{object}, func(kind *Kind, names []string) {
				if kind.definedBy(of, names[0]) {
					kind.defined(stays)
				}
			})
			return nil
		},
	}
	objects := k.metadata.Resource(of)
	reflector := NewReflector(k.log, of.Resource, &metav1.PartialObjectMetadata{}, objects.List, objects.Watch, nil,
		events)
	ctx = klog.NewContext(ctx, k.log)
	for ctx.Err() == nil {
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if of == apiServices && apierrs.IsNotFound(err) {
			k.setWatched(of, true) // there is nothing to be told of
			return
		}
		if !apierrs.IsForbidden(err) && !apierrs.IsUnauthorized(err) && !apierrs.IsNotFound(err) &&
			!apierrs.IsMethodNotSupported(err) {
			Pause(ctx, backoff.Step())
			continue
		}
		k.setWatched(of, false)
		k.log.V(1).Info("what defines kinds is not watched, so the API server is asked", "resource", of.String(),
			"reason", err.Error())
		for again := false; !again && ctx.Err() == nil; again = slices.ContainsFunc(k.all(), (*Kind).isNeeded) {
			Pause(ctx, watchAgain)
		}
	}
}

func (k *Kinds) setWatched(of schema.GroupVersionResource, watched bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.watched, of.Resource)
	if watched {
		k.watched[of.Resource] = true
	}
	k.wake()
}

// changed calls do for each kind, with the names of definitions.
func (k *Kinds) changed(objects []any, do func(kind *Kind, names []string)) {
	var names []string
	for _, object := range objects {
		if definition, ok := object.(*metav1.PartialObjectMetadata); ok {
			names = append(names, definition.Name)
		}
	}
	for _, kind := range k.all() {
		do(kind, names)
	}
	k.wake()
}

// definedBy reports whether a definition with that name may be about the kind.
func (k *Kind) definedBy(of schema.GroupVersionResource, name string) bool {
	k.gate.RLock()
	resource := k.resource.Resource
	k.gate.RUnlock()
	first, group, _ := strings.Cut(name, ".")
	switch {
	case group != k.Group:
		return false
	case of == apiServices:
		return k.Version == "" || first == k.Version
	}
	// The name of the resource is not known of a kind that is not served.
	return resource == "" || resource == first
}
