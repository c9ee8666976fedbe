package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optionalCandidates is candidates for a type that the cluster may not serve. It returns a [KindNotServedError] while
// the type is not served.
func (k *children[T, CT, CLT]) optionalCandidates(
	ctx context.Context, config Config, resource T,
) ([]client.Object, error) {
	if err := config.readyKind(ctx, k.indexed.Kind, resource.GetNamespace()); err != nil {
		return nil, err
	}
	found, err := k.cached(ctx, config, resource)
	if err != nil {
		return nil, config.refusedKind(ctx, k.indexed.Kind, err)
	}
	return found, nil
}

type lackingKey struct{}

// lacking returns the error to show for a child that is wanted, if find found that its type is not served. The answer
// is kept, because what find did not find could be there otherwise.
func lacking(ctx context.Context) error {
	err, _ := ctx.Value(lackingKey{}).(error)
	return err
}

// mayExist reports whether there may be children although the cache shows none. A finalizer must not go because of
// what was true some time ago, so the API server is asked whether it serves the type.
func (k *children[T, CT, CLT]) mayExist(ctx context.Context, config Config) (bool, error) {
	if lacking(ctx) == nil {
		return true, nil
	}
	if watch := contextOf(ctx).optionalWatch(config, k.indexed.Kind); watch != nil {
		return watch.Check(ctx)
	}
	return false, nil
}

// refused returns the error for a child that could not be written: nil if it was to be deleted, and the API server does
// not serve its type.
func (k *children[T, CT, CLT]) refused(ctx context.Context, config Config, desired CT, err error) error {
	err = config.refusedKind(ctx, k.indexed.Kind, err)
	if gotype.IsNil(desired) && isKindNotServed(err) {
		return nil
	}
	return err
}
