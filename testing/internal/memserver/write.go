package memserver

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create stores a new object, or returns AlreadyExists.
func (s *Server) Create(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	opt := optionsOf(opts)
	next, err := s.incoming(obj, ns)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(gvr, ns, next.GetName()) != nil {
		return apierrors.NewAlreadyExists(gvr.GroupResource(), next.GetName())
	}
	r := &record{object: next, history: []revision{{next, opt.FieldManager}}}
	if s.eager || next.GetManagedFields() != nil {
		if err := s.updateManagedFields(r); err != nil {
			return err
		}
	}
	if isDryRun(opt.DryRun) {
		return nil
	}
	s.put(gvr, r, watch.Added)
	return nil
}

// Update replaces an object, or returns NotFound.
func (s *Server) Update(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	opt := optionsOf(opts)
	return s.replace(gvr, obj, ns, opt.FieldManager, opt.DryRun)
}

// Patch replaces an object by its patched state, or returns NotFound.
func (s *Server) Patch(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	opt := optionsOf(opts)
	return s.replace(gvr, obj, ns, opt.FieldManager, opt.DryRun)
}

func (s *Server) replace(gvr schema.GroupVersionResource, obj runtime.Object, ns, manager string, dry []string) error {
	next, err := s.incoming(obj, ns)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.find(gvr, ns, next.GetName())
	if live == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), next.GetName())
	}
	if err := keepUID(gvr, live.object, next); err != nil {
		return err
	}
	r, err := s.successor(live, next, manager)
	if err != nil {
		return err
	}
	if isDryRun(dry) {
		return nil
	}
	s.put(gvr, r, watch.Modified)
	return nil
}

// successor returns the record that replaces live when manager updates it to next.
func (s *Server) successor(live *record, next client.Object, manager string) (*record, error) {
	current := s.eager || len(live.history) == 0 || next.GetManagedFields() != nil || len(live.history) >= maxHistory
	if !current {
		return &record{object: next, history: append(live.history, revision{next, manager})}, nil
	}
	if err := s.updateManagedFields(live); err != nil {
		return nil, err
	}
	kind, err := s.kindOf(next)
	if err != nil {
		return nil, err
	}
	fields, err := s.fields.update(kind, live.object, live.fields, revision{next, manager})
	if err != nil {
		return nil, err
	}
	withManagedFields(next, kind, fields)
	return &record{object: next, fields: fields}, nil
}

// updateManagedFields makes the managed fields of a record current.
func (s *Server) updateManagedFields(r *record) error {
	if len(r.history) == 0 {
		return nil
	}
	kind, err := s.kindOf(r.object)
	if err != nil {
		return err
	}
	fields, err := s.fields.replay(kind, r.history)
	if err != nil {
		return fmt.Errorf("cannot compute the managed fields of %s %q: %w", kind.Kind, r.object.GetName(), err)
	}
	object := copyOf(r.object)
	withManagedFields(object, kind, fields)
	r.object, r.history, r.fields = object, nil, fields
	return nil
}

// Delete removes an object at once, or returns NotFound. The fake client turns the deletion of an object with
// finalizers into an update.
func (s *Server) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	opt := optionsOf(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.find(gvr, ns, name)
	if live == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	if err := checkPreconditions(gvr, live.object, opt.Preconditions); err != nil {
		return err
	}
	if isDryRun(opt.DryRun) {
		return nil
	}
	s.remove(gvr, live)
	return nil
}

// incoming returns a copy of an object as it is to be stored in namespace ns.
func (s *Server) incoming(obj runtime.Object, ns string) (client.Object, error) {
	given, err := asObject(obj)
	if err != nil {
		return nil, err
	}
	next := copyOf(given)
	if next.GetNamespace() == "" {
		next.SetNamespace(ns)
	}
	if next.GetNamespace() != ns {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the namespace of the object (%s) does not match the namespace of the request (%s)",
			next.GetNamespace(), ns))
	}
	return next, nil
}

// optionsOf returns the options of a call, which are one value or none.
func optionsOf[T any](opts []T) T {
	var none T
	if len(opts) == 0 {
		return none
	}
	return opts[0]
}

func isDryRun(values []string) bool {
	return slices.Contains(values, metav1.DryRunAll)
}
