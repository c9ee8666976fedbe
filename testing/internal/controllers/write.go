package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// do carries out a write. What it makes of the object becomes a part of the view.
func (r *runner) do(ctx context.Context, by string, w write) error {
	for _, o := range w.absent {
		there, err := r.exists(ctx, o)
		if there || err != nil {
			return err
		}
	}
	if w.verb == finalize {
		// What was just created is not in the view. The namespace is looked at again when it is.
		left, err := r.hasContent(ctx, w.object.GetName())
		if left || err != nil {
			return err
		}
	}
	kind := w.groupKind()
	// What is in the view is not changed.
	obj := w.object.DeepCopyObject().(client.Object)
	after, err := r.send(ctx, by, w, obj)
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", w, obj.GetNamespace(), obj.GetName(), err)
	}
	switch {
	case after != nil:
		r.changed(key{kind, after.GetNamespace(), after.GetName()}, after)
	case w.verb == remove:
		r.view.markDeleted(key{kind, obj.GetNamespace(), obj.GetName()}, obj.GetUID())
	}
	return nil
}

// send makes the request of a write. It returns the object after it, nil if that is not known.
func (r *runner) send(ctx context.Context, by string, w write, obj client.Object) (client.Object, error) {
	owner := client.FieldOwner(by)
	switch w.verb {
	case create:
		return obj, r.client.Create(ctx, obj, owner)
	case update:
		return obj, r.client.Update(ctx, obj, owner)
	case updateStatus:
		return obj, r.client.Status().Update(ctx, obj, owner)
	case finalize:
		return obj, r.client.SubResource("finalize").Update(ctx, obj, owner)
	case patchMetadata:
		return r.patchMetadata(ctx, by, w)
	case remove:
		if err := r.delete(ctx, w); !isAbsent(err) {
			return nil, err
		}
		return nil, nil
	case bind:
		node := obj.(*corev1.Pod).Spec.NodeName
		obj.(*corev1.Pod).Spec.NodeName = ""
		return nil, r.client.SubResource("binding").Create(ctx, obj, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		})
	case scale:
		body := &autoscalingv1.Scale{}
		if err := r.client.SubResource("scale").Get(ctx, obj, body); err != nil {
			return nil, err
		}
		body.Spec.Replicas = w.replicas
		return nil, r.client.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(body), owner)
	}
	return nil, fmt.Errorf("unknown verb %q", w.verb)
}

func (r *runner) delete(ctx context.Context, w write) error {
	uid, revision := w.object.GetUID(), w.object.GetResourceVersion()
	only := &metav1.Preconditions{UID: &uid}
	if w.unchanged {
		only.ResourceVersion = &revision
	}
	return r.metadata.Resource(r.resources[w.groupKind()].GroupVersionResource).Namespace(w.object.GetNamespace()).
		Delete(ctx, w.object.GetName(), metav1.DeleteOptions{
			PropagationPolicy: w.policy, GracePeriodSeconds: w.grace, Preconditions: only,
		})
}

// patchMetadata sends what the garbage collector changes, and returns the object after it: as it was in the view, which
// the patch asks for, but for the metadata.
func (r *runner) patchMetadata(ctx context.Context, by string, w write) (client.Object, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": w.object.GetUID(), "resourceVersion": w.object.GetResourceVersion(),
		"ownerReferences": w.object.GetOwnerReferences(), "finalizers": w.object.GetFinalizers(),
	}})
	if err != nil {
		return nil, err
	}
	namespace, name := w.object.GetNamespace(), w.object.GetName()
	patched, err := r.metadata.Resource(r.resources[w.groupKind()].GroupVersionResource).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: by})
	if err != nil {
		return nil, err
	}
	was := r.view.find(key{w.groupKind(), namespace, name})
	if was == nil || was.GetResourceVersion() != w.object.GetResourceVersion() {
		return nil, nil
	}
	return withMetadata(was, patched), nil
}

// withMetadata returns an object with the metadata of another one.
func withMetadata(obj, other client.Object) client.Object {
	next := obj.DeepCopyObject().(client.Object)
	next.SetResourceVersion(other.GetResourceVersion())
	next.SetGeneration(other.GetGeneration())
	next.SetOwnerReferences(other.GetOwnerReferences())
	next.SetFinalizers(other.GetFinalizers())
	next.SetDeletionTimestamp(other.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(other.GetDeletionGracePeriodSeconds())
	next.SetManagedFields(other.GetManagedFields())
	next.SetLabels(other.GetLabels())
	next.SetAnnotations(other.GetAnnotations())
	return next
}

// exists looks up whether an owner is there.
func (r *runner) exists(ctx context.Context, o owner) (bool, error) {
	found, err := r.metadata.Resource(r.resources[o.GroupKind].GroupVersionResource).Namespace(o.namespace).
		Get(ctx, o.name, metav1.GetOptions{})
	if isAbsent(err) {
		return false, nil
	}
	return err == nil && found.GetUID() == o.uid, err
}

// hasContent asks the server whether there are objects in a namespace.
func (r *runner) hasContent(ctx context.Context, namespace string) (bool, error) {
	for _, kind := range r.view.kinds() {
		if !r.view.tables[kind].namespaced || r.present != nil && !r.present(kind) {
			continue
		}
		resource := r.resources[kind].GroupVersionResource
		found, err := r.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // The kind is not served any more.
		case err != nil:
			return false, fmt.Errorf("look for %s in the namespace: %w", resource.Resource, err)
		case len(found.Items) > 0:
			return true, nil
		}
	}
	return false, nil
}

// isAbsent reports whether a server says that an object is not there. A server that has no such resource, for it does
// not serve a definition yet, says something else with the same code.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
