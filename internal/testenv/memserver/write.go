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
func (s *Server) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	opt := only(opts)
	next, err := s.incoming(obj, ns)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(gvr, ns, next.GetName()) != nil {
		return apierrors.NewAlreadyExists(gvr.GroupResource(), next.GetName())
	}
	if err := s.decide(&Write{Verb: Create, Resource: gvr, New: next}); err != nil {
		return err
	}
	r := &record{object: next, history: []revision{{next, opt.FieldManager}}}
	if s.eager || next.GetManagedFields() != nil {
		if err := s.settle(r); err != nil {
			return err
		}
	}
	if dryRun(opt.DryRun) {
		return nil
	}
	s.put(gvr, r, watch.Added)
	return nil
}

// Update replaces an object, or returns NotFound.
func (s *Server) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions) error {
	opt := only(opts)
	return s.replace(gvr, obj, ns, opt.FieldManager, opt.DryRun)
}

// Patch replaces an object by its patched state, or returns NotFound.
func (s *Server) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	opt := only(opts)
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
	if err := s.decide(&Write{Verb: Update, Resource: gvr, Old: live.object, New: next}); err != nil {
		return err
	}
	r, err := s.successor(live, next, manager)
	if err != nil {
		return err
	}
	if dryRun(dry) {
		return nil
	}
	s.put(gvr, r, watch.Modified)
	return nil
}

// successor returns the record that replaces live when manager updates it to next.
func (s *Server) successor(live *record, next client.Object, manager string) (*record, error) {
	matters := s.eager || live.settled() || next.GetManagedFields() != nil || len(live.history) >= maxUnsettled
	if !matters {
		return &record{object: next, history: append(live.history, revision{next, manager})}, nil
	}
	if err := s.settle(live); err != nil {
		return nil, err
	}
	kind, err := s.kindOf(next)
	if err != nil {
		return nil, err
	}
	next, err = s.ownership.update(kind, live.object, next, manager)
	return &record{object: next}, err
}

// settle makes the managed fields of a record current.
func (s *Server) settle(r *record) error {
	if r.settled() {
		return nil
	}
	kind, err := s.kindOf(r.object)
	if err != nil {
		return err
	}
	object, err := s.ownership.settle(kind, r.history)
	if err != nil {
		return fmt.Errorf("cannot tell who owns the fields of %s %q: %w", kind.Kind, r.object.GetName(), err)
	}
	r.object, r.history = object, nil
	return nil
}

// Delete removes an object at once, or returns NotFound. Finalizers are the fake client's business: it turns the deletion
// of an object that has some into an update.
func (s *Server) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	opt := only(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.find(gvr, ns, name)
	if live == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	w := Write{Verb: Delete, Resource: gvr, Old: live.object, Preconditions: opt.Preconditions}
	if err := s.decide(&w); err != nil {
		return err
	}
	if dryRun(opt.DryRun) {
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
			"the namespace of the object (%s) does not match the namespace of the request (%s)", next.GetNamespace(), ns))
	}
	return next, nil
}

func (s *Server) decide(w *Write) error {
	for _, rule := range s.rules {
		if err := rule(w); err != nil {
			return err
		}
	}
	return nil
}

// only returns the one set of options of a call, or none set.
func only[T any](opts []T) T {
	var none T
	if len(opts) == 0 {
		return none
	}
	return opts[0]
}

func dryRun(values []string) bool {
	return slices.Contains(values, metav1.DryRunAll)
}
