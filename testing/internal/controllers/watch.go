package controllers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource is a kind as it is watched.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

func (r resource) groupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.kind} }

// notice is what a watch says: one object that changed, or all objects of the kind.
type notice struct {
	kind schema.GroupKind
	// appeared says that the kind has its first object. Nothing else is set then.
	appeared bool

	object  client.Object
	deleted bool
	// all are the objects that there are at a revision, if there is no single object.
	all      []client.Object
	revision string
}

// at is the revision of what a notice says.
func (n notice) at() string {
	if n.object == nil {
		return n.revision
	}
	return n.object.GetResourceVersion()
}

// inbox has the notices that the runner has not seen yet. A watch never waits for the runner.
type inbox struct {
	mu      sync.Mutex
	notices []notice
	// signal has a value when there are notices.
	signal chan struct{}
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (i *inbox) add(n notice) {
	i.mu.Lock()
	i.notices = append(i.notices, n)
	i.mu.Unlock()
	select {
	case i.signal <- struct{}{}:
	default:
	}
}

func (i *inbox) take() []notice {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.notices
	i.notices = nil
	return all
}

// watcher opens watches.
type watcher struct {
	client   client.WithWatch
	metadata metadata.Interface
}

// How long after the end of a watch the next one is opened. The time doubles while watches end before they have all
// objects, as when the server is down.
const shortestRewatch, longestRewatch = time.Second, 16 * time.Second

// follow watches a resource until the context ends. It calls failed for each watch that ends with an error, unless the
// resource is not served, as that of a definition that is new.
func (w watcher) follow(ctx context.Context, r resource, into *inbox, failed func(error)) {
	pause := shortestRewatch
	for ctx.Err() == nil {
		began, err := w.once(ctx, r, into)
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			failed(fmt.Errorf("watch %s: %w", r.GroupResource(), err))
		}
		if began || apierrors.IsNotFound(err) {
			pause = shortestRewatch
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestRewatch)
	}
}

// once opens one watch, which begins with all objects that there are, and reads it to its end. It reports whether it
// had all objects.
func (w watcher) once(ctx context.Context, r resource, into *inbox) (began bool, err error) {
	stream, err := w.open(ctx, r)
	if err != nil {
		return false, err
	}
	defer stream.Stop()
	var initial []client.Object
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return began, apierrors.FromObject(event.Object)
		}
		obj, ok := event.Object.(client.Object)
		if !ok {
			return began, fmt.Errorf("a %s event has a %T", event.Type, event.Object)
		}
		switch {
		case began && event.Type == watch.Bookmark:
		case began:
			into.add(notice{kind: r.groupKind(), object: obj, deleted: event.Type == watch.Deleted})
		case event.Type == watch.Bookmark && obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			into.add(notice{kind: r.groupKind(), all: initial, revision: obj.GetResourceVersion()})
			initial, began = nil, true
		case event.Type == watch.Added:
			initial = append(initial, obj)
		}
	}
	if !began {
		return false, errors.New("the watch ended before it had all objects")
	}
	return true, nil
}

// open opens a watch that the server does not end after a time.
func (w watcher) open(ctx context.Context, r resource) (watch.Interface, error) {
	all, never := true, int64(math.MaxInt32)
	options := metav1.ListOptions{
		SendInitialEvents: &all, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true, TimeoutSeconds: &never,
	}
	if typed[r.groupKind()] != r.Version {
		return w.metadata.Resource(r.GroupVersionResource).Watch(ctx, options)
	}
	gvk := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.kind + "List"}
	empty, err := scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return w.client.Watch(ctx, empty.(client.ObjectList), &client.ListOptions{Raw: &options})
}
