package memserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply merges the configuration of one manager into an object, which it creates if there is none. Fields that another
// manager owns with another value conflict unless the options force it; fields that the manager no longer applies and
// nobody else owns go. If nothing changes, nothing is stored, and the version stays.
func (s *Server) Apply(gvr schema.GroupVersionResource, config runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	opt := only(opts)
	given, err := asObject(config)
	if err != nil {
		return err
	}
	kind, err := s.kindOf(given)
	if err != nil {
		return err
	}
	in := s.applying.intent(given, opt)
	in.object.SetManagedFields(nil)
	in.object.GetObjectKind().SetGroupVersionKind(kind)

	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.find(gvr, ns, in.object.GetName())
	if live == nil && in.subresource != "" {
		return apierrors.NewNotFound(gvr.GroupResource(), in.object.GetName())
	}
	if err := checkIdentity(kind, live, in); err != nil {
		return err
	}
	merged, err := s.merge(kind, live, in)
	if err != nil {
		return err
	}
	next, err := s.incoming(merged, ns)
	if err != nil {
		return err
	}
	write, event := Write{Verb: Create, Resource: gvr, New: next}, watch.Added
	if live != nil {
		write.Verb, write.Old, event = Update, live.object, watch.Modified
	}
	if err := s.decide(&write); err != nil {
		return err
	}
	if dryRun(opt.DryRun) {
		return &dryRunResult{object: write.New}
	}
	if live != nil && saysTheSame(live.object, write.New) {
		return nil
	}
	s.put(gvr, &record{object: write.New}, event)
	return nil
}

// checkIdentity refuses what is applied to another object of the name than the one that is there. A real server takes that for an
// attempt to change the UID.
func checkIdentity(kind schema.GroupVersionKind, live *record, in intent) error {
	given := in.object.GetUID()
	if live == nil || given == "" || given == live.object.GetUID() {
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), in.object.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), string(given), "field is immutable"),
	})
}

// saysTheSame tells whether storing next in the place of live would change nothing: a server then stores nothing.
func saysTheSame(live, next client.Object) bool {
	timeless := func(obj client.Object) client.Object {
		obj = copyOf(obj)
		obj.SetResourceVersion("")
		entries := obj.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		obj.SetManagedFields(entries)
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return obj
	}
	return equality.Semantic.DeepEqual(timeless(live), timeless(next))
}

// merge returns what an apply makes of a stored object, nil if there is none.
func (s *Server) merge(kind schema.GroupVersionKind, live *record, in intent) (client.Object, error) {
	if live == nil {
		nothing, err := s.ownership.empty(kind)
		if err != nil {
			return nil, err
		}
		return s.ownership.apply(kind, nothing, in)
	}
	if err := s.settle(live); err != nil {
		return nil, err
	}
	base := copyOf(live.object)
	base.GetObjectKind().SetGroupVersionKind(kind)
	return s.ownership.apply(kind, base, in)
}

// dryRunResult carries what an apply would have stored past the fake client, which can only hand on what is stored.
type dryRunResult struct {
	object client.Object
}

// Error implements error.
func (r *dryRunResult) Error() string { return "dry run: nothing is stored" }

// answerDryRun makes answer, a pointer, what would have been stored, if err is the result of a dry run. Other errors
// remain.
func answerDryRun(answer any, err error) error {
	var result *dryRunResult
	if !errors.As(err, &result) {
		return err
	}
	result.object.SetManagedFields(nil)
	raw, err := json.Marshal(result.object)
	if err != nil {
		return fmt.Errorf("cannot marshal the result of a dry run: %w", err)
	}
	return json.Unmarshal(raw, answer)
}
