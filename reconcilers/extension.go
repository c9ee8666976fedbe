package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/internal/resourcestate"

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
// is ready for use, also concurrently.
//
// A value lives as long as the resource. The root drops it in the request that finds the resource gone, or finds
// another resource of its name. If a hand-written reconciler calls the node without [Embed], a value lasts for the
// call: the node is to call [ResourceState.End] then. A value that is an [io.Closer] is closed when it is dropped.
type ResourceState[V any] struct {
	// An empty type would have one address for all.
	_ byte
}

// Of returns the value for the resource of the request. At the first call, empty makes the value.
func (s *ResourceState[V]) Of(ctx context.Context, empty func() V) V {
	return resourcestate.LoadOrStore(stateOf(ctx), s, empty)
}

// End drops the value at the end of a call of the node, if nothing keeps it for the next one.
func (s *ResourceState[V]) End(ctx context.Context) {
	if isForgetful(ctx) {
		stateOf(ctx).Drop(s)
	}
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
