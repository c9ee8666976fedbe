package shard

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a main resource of a shard. The zero value stands for writes that are for no resource.
type Resource struct {
	schema.GroupKind
	types.NamespacedName
}

func (r Resource) String() string { return r.Kind + " " + r.NamespacedName.String() }

type resourceContextKey struct{}

// WithResource returns a context for the writes for a resource.
func WithResource(ctx context.Context, of Resource) context.Context {
	return context.WithValue(ctx, resourceContextKey{}, of)
}

func resourceOf(ctx context.Context) Resource {
	of, _ := ctx.Value(resourceContextKey{}).(Resource)
	return of
}

// Settled returns an error if a write for a resource may still arrive, since it was not answered. The resource must not
// be given back then.
func Settled(s *Shard, of Resource) error { return s.guard.settled(of, time.Now()) }
