package espalier

import (
	"context"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OrphanedAnnotation marks an object that was released, see [Switches.OrphanWhen]. Its value is that of [OwnerLabel]
// for the resource that has released it, which alone takes it back.
const OrphanedAnnotation = "espalier.dev/orphaned-from"

// adopter is an object manager that takes back an object that the resource has released, in place of creating one.
type adopter[CT client.Object] struct {
	reconcilers.ObjectManager[CT]
	object   CT
	identify func(ctx context.Context, resource client.Object) (string, error)
}

// Manage creates, updates and deletes, see [reconcilers.ObjectManager].
func (a adopter[CT]) Manage(ctx context.Context, resource client.Object, actual, desired CT) (CT, error) {
	if isThere(actual) || gotype.IsNil(desired) || desired.GetName() == "" {
		return a.ObjectManager.Manage(ctx, resource, actual, desired)
	}
	var none CT
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return none, err
	}
	digest, err := a.identify(ctx, resource)
	if err != nil {
		return none, err
	}
	live := a.object.DeepCopyObject().(CT)
	err = config.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if client.IgnoreNotFound(err) != nil {
		return none, err
	}
	released := err == nil && live.GetAnnotations()[OrphanedAnnotation] == digest
	if released && live.GetDeletionTimestamp() == nil && metav1.GetControllerOf(live) == nil {
		actual = live
	}
	return a.ObjectManager.Manage(ctx, resource, actual, desired)
}

// Describe describes what writes the objects.
func (a adopter[CT]) Describe() reconcilers.Description { return reconcilers.Describe(a.ObjectManager) }

// isThere reports whether an object that an object manager gets exists.
func isThere(actual client.Object) bool {
	return !gotype.IsNil(actual) && !actual.GetCreationTimestamp().Time.IsZero()
}

// release removes from the objects what makes them ours.
func (s *Switches[Self, T, CT]) release(ctx context.Context, resource T) outcome[CT] {
	o := s.look(ctx, resource)
	o.none = ReasonOrphaned
	for _, object := range o.live {
		if object.GetDeletionTimestamp() != nil || o.err != nil {
			continue
		}
		if err := s.disown(ctx, resource, object); err != nil {
			o.err = reconcilers.Failed(reconcilers.Enter(ctx, s.name), object, err)
		}
	}
	o.live = nil
	if o.err == nil {
		o.err = s.unfinalize(reconcilers.Enter(ctx, s.name), resource)
	}
	return o
}

// disown removes from an object the owner reference to the resource, and the labels of the node and of the item. The
// annotation has the field manager of the node, so that it goes when the object is applied again.
func (s *Switches[Self, T, CT]) disown(ctx context.Context, resource T, object CT) error {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	digest, err := s.identify(ctx, resource)
	if err != nil {
		return err
	}
	live := object.DeepCopyObject().(CT)
	refs := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.UID == resource.GetUID()
	})
	live.SetOwnerReferences(refs)
	if labels := maps.Clone(live.GetLabels()); len(labels) > 0 {
		if labels[reconcilers.NodeLabel] == s.name {
			delete(labels, reconcilers.NodeLabel)
			delete(labels, OwnerLabel)
		}
		delete(labels, reconcilers.ItemLabel)
		live.SetLabels(labels)
	}
	live.SetAnnotations(reconcilers.MergeMaps(live.GetAnnotations(), map[string]string{OrphanedAnnotation: digest}))
	base := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, live, base, client.FieldOwner(fieldManager[T]())); err != nil {
		return client.IgnoreNotFound(err)
	}
	reconcilers.RecordEvent(ctx, resource, corev1.EventTypeNormal, "Orphaned",
		"Orphaned %s %q", s.kind, object.GetName())
	return nil
}
