package component

import (
	"context"
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isCurrent returns an error if the resource is not as it was read from the cache: it is being deleted, or its spec has
// changed. Another process of the operator may have seen that already, and deleted objects. The error is a conflict, so
// the request is repeated.
func (r *request[T]) isCurrent(ctx context.Context) error {
	live, err := r.readLive(ctx)
	// An API server always sets a generation.
	changed := live != nil && r.resource.GetGeneration() != 0 && live.Generation > r.resource.GetGeneration()
	if err == nil && (changed || r.ends(live)) {
		err = r.conflict()
	}
	return err
}

// undoIfEnding deletes what the request has created if the resource is gone or being deleted. Another process of the
// operator may have ended the deletion while the creation was on its way, and has no record of the objects then.
func (r *request[T]) undoIfEnding(ctx context.Context) error {
	live, err := r.readLive(ctx)
	if err != nil || !r.ends(live) {
		return err
	}
	return errors.Join(r.conflict(), r.engine().Undo(ctx, r.now))
}

// readLive reads the metadata of the resource past the cache. They are empty if it is gone, and nil if they may not be
// read.
func (r *request[T]) readLive(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	if r.kind.Empty() {
		return nil, nil
	}
	var reader client.Reader = r.config.Client
	if r.config.Cluster() != nil && r.config.APIReader != nil {
		// Without a cluster, the client is in memory and has no cache.
		reader = r.config.APIReader
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(r.kind)
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(r.resource), live); {
	case apierrs.IsForbidden(err):
		return nil, nil
	case apierrs.IsNotFound(err):
		return &metav1.PartialObjectMetadata{}, nil
	case err != nil:
		return nil, fmt.Errorf("unable to find out whether the resource has changed: %w", err)
	}
	return live, nil
}

// ends reports whether the resource is gone or being deleted, as its live metadata show.
func (r *request[T]) ends(live *metav1.PartialObjectMetadata) bool {
	return live != nil && (live.UID != r.resource.GetUID() || live.DeletionTimestamp != nil)
}

func (r *request[T]) conflict() error {
	resource := schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}
	return apierrs.NewConflict(resource, r.resource.GetName(), errChanged)
}

var errChanged = errors.New("the resource has changed since it was read")
