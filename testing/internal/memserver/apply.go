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

// Apply merges the configuration of one manager into an object, or creates the object. Fields that another manager owns
// with another value conflict unless the options force it. Fields that the manager no longer applies are removed unless
// another manager owns them. If nothing changes, nothing is stored, and the version stays.
func (s *Server) Apply(
	gvr schema.GroupVersionResource, config runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	opt := optionsOf(opts)
	given, err := asObject(config)
	if err != nil {
		return err
	}
	kind, err := s.kindOf(given)
	if err != nil {
		return err
	}
	request := s.applying.request(given, opt)
	request.object.SetManagedFields(nil)
	request.object.GetObjectKind().SetGroupVersionKind(kind)

	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.find(gvr, ns, request.object.GetName())
	if live == nil && request.subresource != "" {
		return apierrors.NewNotFound(gvr.GroupResource(), request.object.GetName())
	}
	if err := checkIdentity(kind, live, request); err != nil {
		return err
	}
	if live != nil {
		if err := s.updateManagedFields(live); err != nil {
			return err
		}
	}
	merged, fields, err := s.fields.apply(kind, live, request)
	if err != nil {
		return err
	}
	next, err := s.incoming(merged, ns)
	if err != nil {
		return err
	}
	withManagedFields(next, kind, fields)
	event := watch.Added
	if live != nil {
		event = watch.Modified
		if err := keepUID(gvr, live.object, next); err != nil {
			return err
		}
	}
	if isDryRun(opt.DryRun) {
		return &dryRunResult{object: next}
	}
	if live != nil && equalButTimes(live.object, next) {
		return nil
	}
	s.put(gvr, &record{object: next, fields: fields}, event)
	return nil
}

// checkIdentity refuses a request with another UID than the stored object has. A real server sees such a request as an
// attempt to change the UID.
func checkIdentity(kind schema.GroupVersionKind, live *record, request applyRequest) error {
	given := request.object.GetUID()
	if live == nil || given == "" || given == live.object.GetUID() {
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), request.object.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), string(given), "field is immutable"),
	})
}

// equalButTimes reports whether two objects differ in their versions and the times of managed fields only. A server
// then stores nothing.
func equalButTimes(live, next client.Object) bool {
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

// dryRunResult is the object that an apply would have stored. It is an error, because the fake client answers a call
// without an error with the stored object.
type dryRunResult struct {
	object client.Object
}

// Error implements error.
func (r *dryRunResult) Error() string { return "dry run: nothing is stored" }

// answerDryRun fills answer, a pointer, with the result if err is a dryRunResult. It returns other errors.
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
