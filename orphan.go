package espalier

import (
	"context"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// disown removes from an object the owner reference to the resource, and the label of the node.
func (s *Switches[Self, T, CT]) disown(ctx context.Context, resource T, object CT) error {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	live := object.DeepCopyObject().(CT)
	refs := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.UID == resource.GetUID()
	})
	live.SetOwnerReferences(refs)
	if labels := maps.Clone(live.GetLabels()); labels[reconcilers.NodeLabel] == s.name {
		delete(labels, reconcilers.NodeLabel)
		delete(labels, OwnerLabel)
		live.SetLabels(labels)
	}
	base := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, live, base); err != nil {
		return client.IgnoreNotFound(err)
	}
	reconcilers.RecordEvent(ctx, resource, corev1.EventTypeNormal, "Orphaned",
		"Orphaned %s %q", s.kind, object.GetName())
	return nil
}
