package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// suspendedAnnotation marks an object that a supervisor has suspended, and that is not written while nothing changes
// the supervision: one that is only created, and one whose node waits. It is written once more when it is resumed.
const suspendedAnnotation = "espalier.dev/suspended"

func isMarked(object client.Object) bool { return object.GetAnnotations()[suspendedAnnotation] != "" }

func mark(object client.Object) {
	suspended := map[string]string{suspendedAnnotation: "true"}
	object.SetAnnotations(reconcilers.MergeMaps(object.GetAnnotations(), suspended))
}

// isThere reports whether an object that an object manager gets exists.
func isThere(actual client.Object) bool {
	return !gotype.IsNil(actual) && !actual.GetCreationTimestamp().Time.IsZero()
}

// creator is an object manager that updates only to suspend and to resume.
type creator[CT client.Object] struct {
	reconcilers.ObjectManager[CT]
	// tracks is true if nothing but a track has the resource woken by the object.
	tracks bool
}

// Manage creates and deletes, see [reconcilers.ObjectManager].
func (c creator[CT]) Manage(ctx context.Context, resource client.Object, actual, desired CT) (CT, error) {
	if gotype.IsNil(desired) || !isThere(actual) || isMarked(actual) {
		return c.ObjectManager.Manage(ctx, resource, actual, desired)
	}
	if reconcilers.SupervisionOf(ctx, resource) == reconcilers.Suspend {
		if runs, err := runs(ctx, actual); err != nil {
			return actual, err
		} else if runs {
			return c.ObjectManager.Manage(ctx, resource, actual, desired)
		}
	}
	if !c.tracks {
		return actual, nil
	}
	config, err := reconcilers.RetrieveConfig(ctx)
	if err == nil {
		err = config.TrackAndGet(ctx, client.ObjectKeyFromObject(actual), actual.DeepCopyObject().(CT))
	}
	return actual, client.IgnoreNotFound(err)
}

// CreatesOnly has a new name refused: something may depend on what was created.
func (c creator[CT]) CreatesOnly() bool { return true }

// Describe describes what writes the objects.
func (c creator[CT]) Describe() reconcilers.Description { return reconcilers.Describe(c.ObjectManager) }

// runs reports whether the supervisor would change an object to suspend it.
func runs(ctx context.Context, object client.Object) (bool, error) {
	suspended := object.DeepCopyObject().(client.Object)
	remove, err := reconcilers.SupervisorOf(ctx).Suspend(suspended)
	return remove || !equality.Semantic.DeepEqual(suspended, object), err
}
