package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// Delete implements [client.Client]. There are no kubelets: a Pod on a node with a grace period stays until it is
// deleted with a period of zero.
func (c *memoryClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	if err := invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options)); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(obj)
	call := c.call(Delete, gvk, key)
	call.DryRun = isDryRun(options.DryRun)
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		call.UID = *options.Preconditions.UID
	}
	return c.run(ctx, call, func() error {
		return c.store.delete(gvk, key, options, c.manager(""))
	})
}

// DeleteAllOf implements [client.Client].
func (c *memoryClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	errs := validation.ValidateDeleteOptions(options.AsDeleteOptions())
	if err := invalidOptions("DeleteOptions", errs); err != nil {
		return err
	}
	call := c.call(DeleteCollection, gvk, client.ObjectKey{Namespace: options.Namespace})
	call.DryRun = isDryRun(options.DryRun)
	return c.run(ctx, call, func() error { return c.deleteCollection(gvk, options) })
}

func (c *memoryClient) deleteCollection(gvk schema.GroupVersionKind, options *client.DeleteAllOfOptions) error {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return err
	}
	if r.kind.Scope == registry.Namespaced && options.Namespace == "" || gvk.GroupKind() == namespaceKind {
		return apierrors.NewMethodNotSupported(r.resource, "delete")
	}
	selects, err := r.selector(&options.ListOptions)
	if err != nil {
		return err
	}
	for _, found := range s.state.tables[gvk.GroupKind()].in(r.namespace(options.Namespace)) {
		if !selects(found) {
			continue
		}
		err := s.deleteRecord(r, found, options.AsDeleteOptions(), c.manager(""))
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// delete deletes an object.
func (s *memory) delete(
	gvk schema.GroupVersionKind, key client.ObjectKey, options *metav1.DeleteOptions, manager string,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return err
	}
	live, err := s.writable(r, key.Namespace, key.Name, "")
	if err != nil {
		return err
	}
	if live == nil {
		return apierrors.NewNotFound(r.resource, key.Name)
	}
	return s.deleteRecord(r, live, options, manager)
}

// deleteRecord deletes an object. The caller holds the lock.
func (s *memory) deleteRecord(r *resource, live *record, options *metav1.DeleteOptions, manager string) error {
	next, v, err := decideDelete(r, live.object, options, s.now())
	if err != nil || isDryRun(options.DryRun) {
		return err
	}
	switch v {
	case removed:
		return s.commit(live, nil, manager)
	case stored:
		after := newRecord(live.gvk, next)
		after.fields, after.showFields = live.fields, live.showFields
		return s.commit(live, after, manager)
	}
	return nil
}
