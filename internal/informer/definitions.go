package informer

import (
	"context"
	"strings"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

var (
	customResources = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	apiServices = schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
	}
	// definitions are the resources that make an API server serve types. Only their metadata is watched: an event says
	// when to ask, and the API server then says what it serves.
	definitions = []schema.GroupVersionResource{customResources, apiServices}
)

// Definitions are the resources of which [Kinds] watch the metadata.
var Definitions = []schema.GroupResource{customResources.GroupResource(), apiServices.GroupResource()}

// watchAgain is after which time a watch of definitions that was refused is tried again.
const watchAgain = 10 * time.Minute

// watch watches a resource of definitions until the manager stops. A watch that is refused is tried again later.
func (k *Kinds) watch(ctx context.Context, of schema.GroupVersionResource) {
	for ctx.Err() == nil {
		err := k.watchOnce(ctx, of)
		if ctx.Err() != nil {
			return
		}
		k.setWatched(of, false)
		k.log.V(1).Info("what defines kinds is not watched, so the API server is asked", "resource", of.String(),
			"reason", err.Error())
		timer := time.NewTimer(watchAgain)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (k *Kinds) setWatched(of schema.GroupVersionResource, watched bool) {
	k.mu.Lock()
	if watched {
		k.watched[of.Resource] = true
	} else {
		delete(k.watched, of.Resource)
	}
	k.mu.Unlock()
	if watched {
		// What changed before the watch is not known.
		for _, kind := range k.all() {
			kind.refresh()
		}
	}
	k.wake()
}

// watchOnce watches a resource until the manager stops, or until the watch is refused.
func (k *Kinds) watchOnce(ctx context.Context, of schema.GroupVersionResource) error {
	config := rest.CopyConfig(k.in.GetConfig())
	config.NegotiatedSerializer = nil
	objects, err := metadata.NewForConfigAndClient(config, k.in.GetHTTPClient())
	if err != nil {
		return err
	}
	resources := objects.Resource(of)
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resources.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resources.Watch(ctx, options)
		},
	}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := informer.SetTransform(nameOnly); err != nil {
		return err
	}
	err = informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrs.IsForbidden(err) || apierrs.IsUnauthorized(err) || apierrs.IsNotFound(err) ||
				apierrs.IsMethodNotSupported(err) {
				stop(err)
				return
			}
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		})
	if err != nil {
		return err
	}
	event := func(shown any) { k.definitionShown(of, shown) }
	added, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: event, UpdateFunc: func(_, after any) { event(after) }, DeleteFunc: event,
	})
	if err != nil {
		return err
	}
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		if toolscache.WaitForCacheSync(running.Done(), added.HasSynced) {
			k.setWatched(of, true)
		}
	}()
	informer.RunWithContext(running)
	<-synced
	return context.Cause(running)
}

// nameOnly drops the annotations of a definition, which may be large.
func nameOnly(shown any) (any, error) {
	if obj, ok := shown.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion,
		}}, nil
	}
	return shown, nil
}

// isWatched reports whether the watch of a resource has synced. Events before that need no answer, because all kinds
// are checked then.
func (k *Kinds) isWatched(of schema.GroupVersionResource) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.watched[of.Resource]
}

// definitionShown has the kinds checked that the definition of an event may be about.
func (k *Kinds) definitionShown(of schema.GroupVersionResource, shown any) {
	if missed, ok := shown.(toolscache.DeletedFinalStateUnknown); ok {
		shown = missed.Obj
	}
	obj, ok := shown.(*metav1.PartialObjectMetadata)
	if !ok || !k.isWatched(of) {
		return
	}
	changed := false
	for _, kind := range k.all() {
		if kind.definedBy(of, obj.Name) {
			kind.defined()
			changed = true
		}
	}
	if changed {
		k.wake()
	}
}

// definedBy reports whether a definition with that name may be about the kind.
func (k *Kind) definedBy(of schema.GroupVersionResource, name string) bool {
	k.gate.RLock()
	resource := k.resource
	k.gate.RUnlock()
	first, group, _ := strings.Cut(name, ".")
	switch {
	case group != k.Group:
		return false
	case of == apiServices:
		return first == k.Version
	}
	// The name of the resource is not known of a kind that is not served.
	return resource == "" || resource == first
}
