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
	if r.kind.Empty() {
		return nil
	}
	var reader client.Reader = r.config.Client
	if r.config.Cluster() != nil && r.config.APIReader != nil {
		// Without a cluster, the client is in memory and has no cache.
		reader = r.config.APIReader
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(r.kind)
	err := reader.Get(ctx, client.ObjectKeyFromObject(r.resource), live)
	switch generation := r.resource.GetGeneration(); {
	case apierrs.IsForbidden(err):
		return nil
	case err != nil && !apierrs.IsNotFound(err):
		return fmt.Errorf("unable to find out whether the resource has changed: %w", err)
	case err == nil && live.UID == r.resource.GetUID() && live.DeletionTimestamp == nil &&
		// An API server always sets a generation.
		(generation == 0 || live.Generation <= generation):
		return nil
	}
	resource := schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}
	return apierrs.NewConflict(resource, r.resource.GetName(), errChanged)
}

var errChanged = errors.New("the resource has changed since it was read")
