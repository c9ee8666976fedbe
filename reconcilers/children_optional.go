package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optionalCandidates is candidates for a type that the cluster may not serve. There are none while it is not served.
func (k *children[T, CT, CLT]) optionalCandidates(
	ctx context.Context, config Config, resource T,
) (found []client.Object, err error) {
	err = config.readyKind(ctx, k.indexed.Kind, resource.GetNamespace())
	if err == nil {
		if found, err = k.cached(ctx, config, resource); err == nil {
			return found, nil
		}
		if err = config.refusedKind(ctx, k.indexed.Kind, err); isKindNotServed(err) {
			s := contextOf(ctx)
			s.state.noteKindAnswer(optionalKind{s.otherCluster(config), k.indexed.Kind}, err)
		}
	}
	if isKindNotServed(err) {
		return nil, nil
	}
	return nil, err
}

// lacking returns the error to show for a child that is wanted, if this request found that its type is not served.
func (k *children[T, CT, CLT]) lacking(ctx context.Context, config Config) error {
	s := contextOf(ctx)
	answer, known := s.state.kindAnswer(optionalKind{s.otherCluster(config), k.indexed.Kind})
	if !known {
		// Outside of a root nothing is kept.
		answer = config.readyKind(ctx, k.indexed.Kind, "")
	}
	if isKindNotServed(answer) {
		return answer
	}
	return nil
}

// mayExist reports whether there may be children although the cache shows none. A finalizer must not go because of
// what was true some time ago, so the API server is asked whether it serves the type.
func (k *children[T, CT, CLT]) mayExist(ctx context.Context, config Config) (bool, error) {
	if k.lacking(ctx, config) == nil {
		return true, nil
	}
	if watch := contextOf(ctx).optionalWatch(config, k.indexed.Kind); watch != nil {
		return watch.Check()
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
