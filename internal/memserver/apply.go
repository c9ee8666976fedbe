package memserver

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply merges the configuration of one manager into an object, which it creates if there is none. Fields that another
// manager owns with another value conflict unless the options force it; fields that the manager no longer applies and
// nobody else owns go.
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
	s.put(gvr, &record{object: write.New}, event)
	return nil
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
