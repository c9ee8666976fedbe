package mapped

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	objs, err := s.ofRow(ctx, kind)
	if err != nil {
		return err
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, obj := range objs {
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

// ofRow returns the objects of a kind that the row has, as the API server has them. There are none of a kind that
// cannot be listed, such as a review.
func (s *Server) ofRow(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := listOf(kind)
	if err := s.inner.List(ctx, list); err != nil && !apierrors.IsMethodNotSupported(err) {
		return nil, err
	}
	all := &mappedClient{server: s}
	var objs []*unstructured.Unstructured
	for i := range list.Items {
		if all.sees(kind, &list.Items[i]) {
			objs = append(objs, &list.Items[i])
		}
	}
	return objs, nil
}

// Objects returns all objects of the row as it knows them, in no order.
func (s *Server) Objects(ctx context.Context) ([]client.Object, error) {
	s.mu.Lock()
	kinds := s.kinds.UnsortedList()
	s.mu.Unlock()
	var objs []client.Object
	for _, kind := range kinds {
		found, err := s.ofRow(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("cannot list what the row has of %s: %w", kind.Kind, s.error(err))
		}
		for _, u := range found {
			if isDefinition(kind.GroupKind()) && !s.isName(u.GetName()) {
				continue
			}
			obj := &unstructured.Unstructured{}
			if err := s.answer(s.target(kind, "", ""), u, obj); err != nil {
				return nil, err
			}
			objs = append(objs, obj)
		}
	}
	return objs, nil
}
