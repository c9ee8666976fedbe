package reconcilers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// casting says that the nodes below see original as object. Both are known by their identity: a copy of object is just some
// object.
type casting struct {
	object   client.Object
	original client.Object
	outer    *casting
}

// withCast returns the context for nodes that see resource, which may be a cast object itself, as cast.
func withCast(ctx context.Context, cast, resource client.Object) context.Context {
	original, _ := originalOf(ctx, resource)
	return derive(ctx, func(s *scope) {
		s.casts = &casting{object: cast, original: original, outer: s.casts}
		s.resourceType = cast
	})
}

// originalOf returns the resource that obj stands for, as the root loaded it, and true if obj is a cast object. Any other
// object stands for itself.
//
// It tells the kind. Of what is in it, obj may know better: the changes of nodes are carried over when the cast ends.
func originalOf(ctx context.Context, obj client.Object) (client.Object, bool) {
	for c := scopeOf(ctx).casts; c != nil; c = c.outer {
		if c.object == obj {
			return c.original, true
		}
	}
	return obj, false
}

// kindOfOriginal returns the kind of the resource that obj stands for, empty where it cannot be told.
func kindOfOriginal(ctx context.Context, obj client.Object) schema.GroupVersionKind {
	original, _ := originalOf(ctx, obj)
	if carried := original.GetObjectKind().GroupVersionKind(); !carried.Empty() {
		return carried
	}
	s := scopeOf(ctx)
	switch {
	case s.hasOriginalConfig && s.originalConfig.Client != nil:
		return kindOf(s.originalConfig.Client, original)
	case s.hasConfig && s.config.Client != nil:
		return kindOf(s.config.Client, original)
	default:
		return schema.GroupVersionKind{}
	}
}
