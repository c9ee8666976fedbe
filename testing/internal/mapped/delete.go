package mapped

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete implements [client.Client].
func (c *mappedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	t, err := c.server.targetOf(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	options.Preconditions = t.preconditions(options.Preconditions)
	if err := c.server.inner.Delete(ctx, t.on, options); err != nil {
		return c.server.error(err)
	}
	if len(options.DryRun) > 0 {
		return nil
	}
	return c.server.noteDeleted(ctx, t)
}

// DeleteAllOf implements [client.Client]. Objects in no namespace are deleted one by one, since others have some too.
func (c *mappedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	t, err := c.server.targetOf(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	if !t.suffixed {
		mapped := *options
		mapped.ListOptions = *c.server.listOptions(t.kind, &options.ListOptions)
		mapped.Preconditions = t.preconditions(options.Preconditions)
		return c.server.error(c.server.deleteCollection(ctx, t, &mapped))
	}
	list := listOf(t.kind)
	if err := c.List(ctx, list, &options.ListOptions); err != nil {
		return err
	}
	for i := range list.Items {
		if err := client.IgnoreNotFound(c.Delete(ctx, &list.Items[i], &options.DeleteOptions)); err != nil {
			return err
		}
	}
	return nil
}

// deleteCollection deletes objects in one call. An API server does not say which: the lists before and after it do.
func (s *Server) deleteCollection(ctx context.Context, t target, options *client.DeleteAllOfOptions) error {
	before, after := listOf(t.kind), listOf(t.kind)
	if err := s.inner.List(ctx, before, &options.ListOptions); err != nil {
		return err
	}
	if err := s.inner.DeleteAllOf(ctx, t.on, options); err != nil {
		return err
	}
	if err := s.inner.List(ctx, after, &options.ListOptions); err != nil {
		return err
	}
	for i := range before.Items {
		was := &before.Items[i]
		same := func(is unstructured.Unstructured) bool { return is.GetUID() == was.GetUID() }
		j := slices.IndexFunc(after.Items, same)
		switch {
		case j < 0:
			s.noteRemoved()
		case after.Items[j].GetResourceVersion() != was.GetResourceVersion():
			s.noteVersion(t, &after.Items[j])
		}
	}
	return nil
}

// noteDeleted notes what a delete has changed. An API server does not say whether the object is removed, or marked as
// deleted, or was that before: a read does.
func (s *Server) noteDeleted(ctx context.Context, t target) error {
	left := t.on.DeepCopy()
	err := s.inner.Get(ctx, client.ObjectKeyFromObject(left), left)
	switch {
	case err == nil:
		s.noteVersion(t, left)
		return nil
	case apierrors.IsNotFound(err):
		s.noteRemoved()
		return nil
	default:
		return s.error(err)
	}
}

// noteRemoved notes that an object is removed.
func (s *Server) noteRemoved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removals++
}

// noteVersion notes the resource version of an object on the API server. It is a change if it was not seen before.
func (s *Server) noteVersion(t target, obj *unstructured.Unstructured) {
	key := t.key
	key.Name = s.text(obj.GetName())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rowVersion(key, obj.GetResourceVersion())
}

// preconditions returns preconditions as they are sent.
func (t target) preconditions(of *metav1.Preconditions) *metav1.Preconditions {
	if of == nil {
		return nil
	}
	mapped := of.DeepCopy()
	if mapped.UID != nil {
		uid, _ := t.server.serverUID(string(*mapped.UID))
		*mapped.UID = types.UID(uid)
	}
	if mapped.ResourceVersion != nil {
		*mapped.ResourceVersion = t.server.serverVersion(t.key, *mapped.ResourceVersion)
	}
	return mapped
}
