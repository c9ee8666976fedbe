package reconcilers

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/resourcestate"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Failed notes that err came up at the node of ctx while the node dealt with object, which may be nil. It returns err
// as it is, so that a node can end with
//
//	return reconcilers.Result{}, reconcilers.Failed(ctx, child, err)
//
// The root returns such an error as an [Error] with the path of the node, the kind and name of the object, and the
// class of the error (see [Classify]). The first note of an error counts. The error of a node that does not call Failed
// is located at the nearest node of this package around it. Failed does nothing for a nil error, and outside of a root.
func Failed(ctx context.Context, object client.Object, err error) error {
	recordFailure(ctx, describeObject(object), err)
	return err
}

// RecordEvent records an event on the resource that the root reconciles, in the cluster of the root. resource is what
// the node was called with: below a [CastResource] the event is recorded on the object behind the cast, and below a
// [WithConfig] with the recorder of the root's [Config]. The message is formatted with args. Without a recorder, the
// event is dropped.
func RecordEvent(ctx context.Context, resource client.Object, eventType, reason, message string, args ...any) {
	s := contextOf(ctx)
	config := s.originalConfig
	if !s.hasOriginalConfig {
		config = s.config
	}
	original, _ := resourceBehindCast(ctx, resource)
	config.record(original, eventType, reason, message, args...)
}

// ResourceState is what a node remembers of each resource from one request to the next. It is a field of the node; the
// zero value is ready for use, also concurrently. A value that is an [io.Closer] is closed when it is dropped.
//
// Below a root, a value lives as long as the resource: it is dropped by the request that finds the resource gone, or
// finds another resource of its name. In a node that a hand-written reconciler calls, the node drops the value by
// [ResourceState.Forget].
type ResourceState[V any] struct {
	mu         sync.Mutex
	standalone map[types.UID]V
}

// Of returns the value for resource, made by empty at the first call. The resource is the one of the request.
func (s *ResourceState[V]) Of(ctx context.Context, resource client.Object, empty func() V) V {
	if kept := stateOf(ctx); kept != nil {
		return resourcestate.LoadOrStore(kept, s, empty)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.standalone[resource.GetUID()]
	if !ok {
		if s.standalone == nil {
			s.standalone = map[types.UID]V{}
		}
		value = empty()
		s.standalone[resource.GetUID()] = value
	}
	return value
}

// Forget drops the value for the resource of that UID, if there is no root that does so.
func (s *ResourceState[V]) Forget(uid types.UID) {
	s.mu.Lock()
	value, ok := s.standalone[uid]
	delete(s.standalone, uid)
	s.mu.Unlock()
	if closer, closes := any(value).(io.Closer); ok && closes {
		_ = closer.Close() // the value is dropped, so its error says nothing to anyone
	}
}

// standaloneUIDs returns the UIDs of the resources that have a value without a root.
func (s *ResourceState[V]) standaloneUIDs() []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.standalone))
}
