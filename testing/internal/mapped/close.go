package mapped

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes notes that the row may have objects of a kind.
func (s *Server) writes(kind schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds.Insert(kind)
}

// generateName makes a name by a counter if an object asks for a generated one, as in memory.
func (s *Server) generateName(obj client.Object) {
	if obj.GetName() != "" || obj.GetGenerateName() == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generated++
	obj.SetName(fmt.Sprintf("%s%03d", obj.GetGenerateName(), s.generated))
}

// Close deletes the objects of the row, even if they have finalizers, and its namespaces. Definitions stay.
func (s *Server) Close(ctx context.Context) error {
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	s.mu.Lock()
	s.kinds.Delete(namespace)
	kinds := s.kinds.UnsortedList()
	s.mu.Unlock()
	var errs []error
	for _, kind := range append(kinds, namespace) {
		if isDefinition(kind.GroupKind()) {
			continue
		}
		if err := s.deleteAll(ctx, kind); err != nil {
			errs = append(errs, fmt.Errorf("cannot delete what the row has of %s: %w", kind.Kind, err))
		}
	}
	return errors.Join(errs...)
}

// deleteAll deletes the objects of a kind.
func (s *Server) deleteAll(ctx context.Context, kind schema.GroupVersionKind) error {
	list := listOf(kind)
	if err := s.inner.List(ctx, list); err != nil {
		return err
	}
	row := &mappedClient{server: s}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for i := range list.Items {
		obj := &list.Items[i]
		if !row.sees(kind, obj) {
			continue
		}
		if err := client.IgnoreNotFound(s.inner.Delete(ctx, obj, client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		if len(obj.GetFinalizers()) == 0 {
			continue
		}
		if err := client.IgnoreNotFound(s.inner.Patch(ctx, obj, free)); err != nil {
			return err
		}
	}
	return nil
}
