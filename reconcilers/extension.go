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

// Failed records that err occurred at the node of ctx while the node handled object, which may be nil. It returns err
// unchanged, so that a node can end with
//
//	return reconcilers.Result{}, reconcilers.Failed(ctx, child, err)
//
// The root returns such an error as an [Error] with the path of the node, the kind and name of the object, and the
// class of the error (see [Classify]). If Failed is called several times for one error, the first call counts. If a
// node does not call Failed, the path is the path of the nearest node of this package around it. Failed does nothing if
// err is nil, and outside of a root.
func Failed(ctx context.Context, object client.Object, err error) error {
	recordFailure(ctx, describeObject(object), err)
	return err
}

// RecordEvent records an event on the resource that the root reconciles, in the cluster of the root. resource is the
// resource that the node got. Below a [CastResource] the event is recorded on the original object, not on the converted
// one. Below a [WithConfig] it is recorded with the recorder of the root's [Config]. The message is formatted with
// args. Without a recorder, the event is dropped.
func RecordEvent(ctx context.Context, resource client.Object, eventType, reason, message string, args ...any) {
	s := contextOf(ctx)
	config := s.originalConfig
	if !s.hasOriginalConfig {
		config = s.config
	}
	original, _ := resourceBehindCast(ctx, resource)
	config.record(original, eventType, reason, message, args...)
}

// ResourceState keeps a value for each resource from one request to the next. It is a field of a node. The zero value
// is ready for use, also concurrently. A value that is an [io.Closer] is closed when it is dropped.
//
// Below a root, a value lives as long as the resource. The root drops it in the request that finds the resource gone,
// or finds another resource of its name. If a hand-written reconciler calls the node, the node has to drop the value
// with [ResourceState.Forget].
type ResourceState[V any] struct {
	mu         sync.Mutex
	standalone map[types.UID]V
}

// Of returns the value for resource, the resource of the request. At the first call, empty makes the value.
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

// Forget drops the value for the resource with that UID. Below a root it does nothing, because the root drops values
// itself.
func (s *ResourceState[V]) Forget(uid types.UID) {
	s.mu.Lock()
	value, ok := s.standalone[uid]
	delete(s.standalone, uid)
	s.mu.Unlock()
	if closer, closes := any(value).(io.Closer); ok && closes {
		_ = closer.Close() // the value is dropped, so its error does not matter
	}
}

// standaloneUIDs returns the UIDs of the resources that have a value, outside of a root.
func (s *ResourceState[V]) standaloneUIDs() []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.standalone))
}

// Claim says in the set-up of a tree that only the node of ctx may have what key stands for: a name that it writes
// under, or a field that it sets. A node calls it in SetupWithManager, and returns an error if another node of the tree
// has claimed an equal key. Claim then returns the path of that node, see [RetrievePath], and true. The key must be
// comparable. Use a type of your own, so that keys of other packages are not equal. Outside of the set-up of a root
// nothing is claimed.
func Claim(ctx context.Context, key any) (claimant string, taken bool) {
	claims := contextOf(ctx).claims
	if claims == nil {
		return "", false
	}
	if claimant, taken = claims[key]; !taken {
		claims[key] = RetrievePath(ctx)
	}
	return claimant, taken
}
