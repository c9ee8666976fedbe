package espalier

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/internal/ownership"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removeNamed deletes the objects of the names that desired returns, if the resource provably made them. The engine has
// deleted those that it finds. Of an item that is gone, no name is known.
func (s *Switches[Self, T, CT]) removeNamed(ctx context.Context, resource T, o *outcome[CT]) {
	if reconcilers.IsItemGone(ctx) {
		return
	}
	named, err := s.desired(ctx, resource)
	if notReady := asNotReady(err); notReady != nil {
		o.waits = new(conditionOfError(notReady))
		o.wake(notReady.Delay)
		return
	}
	if err != nil {
		o.err = reconcilers.Failed(ctx, nil, err)
		return
	}
	for _, object := range named {
		if gotype.IsNil(object) || object.GetName() == "" {
			continue
		}
		if err := s.removeOne(ctx, resource, object, o); err != nil {
			o.err = reconcilers.Failed(ctx, object, err)
			return
		}
	}
}

// removeOne deletes the object that has the name of named, or says why not.
func (s *Switches[Self, T, CT]) removeOne(ctx context.Context, resource, named client.Object, o *outcome[CT]) error {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	digest, err := s.identify(ctx, resource)
	if err != nil {
		return err
	}
	live := s.object.DeepCopyObject().(CT)
	switch err := config.TrackAndGet(ctx, client.ObjectKeyFromObject(named), live); {
	case s.isMissing(err), err == nil && s.finds(ctx, resource, live, digest):
		return nil
	case err != nil:
		return err
	}
	if claim := s.claimAgainst(ctx, resource, live, digest); claim != "" {
		if o.waits == nil && !reconcilers.CleansUp(ctx, resource) {
			o.named, o.waits = live, &metav1.Condition{
				Status: metav1.ConditionFalse, Reason: ReasonNotOurs,
				Message: fmt.Sprintf("%s is to be absent, and stays: %s", objectname.WithKind(s.kind, live), claim),
			}
		}
		return nil
	}
	var none CT
	left, err := s.manager(false).Manage(ctx, resource, live, none)
	if err != nil {
		return err
	}
	if !gotype.IsNil(left) {
		o.live = append(o.live, left)
	}
	if r, ok := reconcilers.SupervisorOf(ctx).(*reporter); ok {
		// The delete was accepted. A finalizer may keep the object for a while.
		live.SetDeletionTimestamp(new(metav1.NewTime(rtime.RetrieveNow(ctx))))
		r.observed = append(r.observed, reconcilers.ObservedObject{
			Node: reconcilers.RetrievePath(ctx), Kind: s.gvk(ctx), Namespace: live.GetNamespace(), Name: live.GetName(),
			Object: live,
		})
	}
	return nil
}

// finds reports whether the engine finds an object by itself.
func (s *Switches[Self, T, CT]) finds(ctx context.Context, resource, live client.Object, digest string) bool {
	labels := live.GetLabels()
	if labels[reconcilers.ItemLabel] != reconcilers.ItemLabelOf(ctx) {
		return false
	}
	if s.has(unowned) || s.isFinalized() {
		return labels[ownerLabel] == digest && labels[reconcilers.NodeLabel] == s.name
	}
	return metav1.IsControlledBy(live, resource) && (!s.has(labeled) || labels[reconcilers.NodeLabel] == s.name)
}

// claimAgainst says why an object is not provably one that an earlier version of the node made. It is empty if it is:
// the resource controls it, or nobody does and it has the label of the resource; and it is that of no other node, and
// of no other item.
func (s *Switches[Self, T, CT]) claimAgainst(ctx context.Context, resource, live client.Object, digest string) string {
	labels, controller := live.GetLabels(), metav1.GetControllerOf(live)
	ours := controller != nil && controller.UID == resource.GetUID()
	node, item := labels[reconcilers.NodeLabel], labels[reconcilers.ItemLabel]
	switch claim := ownership.ClaimOf(live); {
	case !ours && (controller != nil || labels[ownerLabel] != digest):
		if claim == "" {
			return "nothing shows that the resource made it"
		}
		return "it " + claim
	case node != "" && node != s.name:
		return fmt.Sprintf("it is the child of the node %q", node)
	case item != "" && item != reconcilers.ItemLabelOf(ctx):
		return fmt.Sprintf("it was made for an item, and has the label %s=%s", reconcilers.ItemLabel, item)
	}
	return ""
}
