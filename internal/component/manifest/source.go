package manifest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrChanged means that what was generated was changed before it was written.
var ErrChanged = errors.New("what was generated for it was changed before it could be written")

// request is what the sources of one request share.
type request struct {
	options *Options
	// generated is what was generated; nil if generate has to be called for it. err is the error of that.
	generated []client.Object
	generate  func() ([]client.Object, error)
	err       error
	// lock keeps methods of generated objects from being called at the same time. They may be of any type and may share
	// data.
	lock sync.Mutex
}

// source is where the manifest of an object comes from in one request. Few objects are written in a request, and none
// between two requests, so a manifest is made when it is asked for.
type source struct {
	// index is the position of what was generated, and hash its hash when it was prepared.
	index int
	hash  uint64
	// namespace is the namespace of the manifest.
	namespace string

	*request
	// content is what was generated, checked and sanitized, in its own namespace; nil if it is not made.
	content  map[string]any
	manifest *unstructured.Unstructured
}

// object returns what was generated at a position.
func (r *request) object(index int) (client.Object, error) {
	if r.generated == nil && r.err == nil && r.generate != nil {
		r.generated, r.err = r.generate()
		r.generate = nil
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case index >= len(r.generated):
		return nil, ErrChanged
	}
	return r.generated[index], nil
}

// sanitized returns the content.
func (s *source) sanitized() (map[string]any, error) {
	if s.content != nil {
		return s.content, nil
	}
	generated, err := s.object(s.index)
	if err != nil {
		return nil, err
	}
	if hash := hashOf(generated); hash == 0 || hash != s.hash {
		return nil, ErrChanged
	}
	content, err := contentOf(generated, s.options)
	if err == nil {
		_, errs := sanitize(content, s.options.Prefix)
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, fmt.Errorf("its manifest cannot be made again: %w", err)
	}
	return content, nil
}

// Manifest returns the object as it is to be written, without the marks of the component. It is made from what was
// generated, in each call; the error is [ErrChanged] if that has changed since. It is nil for the zero Object. It is
// safe for concurrent use.
func (o *Object) Manifest() (*unstructured.Unstructured, error) {
	s := o.source
	if s == nil {
		return nil, nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.manifest != nil {
		return s.manifest, nil
	}
	content, err := s.sanitized()
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: inNamespace(content, s.namespace)}, nil
}

// Suspended returns the object as suspend leaves its manifest. It returns the object itself if suspend changes nothing.
// Fields that suspend changes are written even if they are to be ignored. remove is what suspend returns.
func (o *Object) Suspended(
	suspend func(client.Object) (remove bool, err error),
) (suspended Object, remove bool, err error) {
	made, err := o.Manifest()
	if err != nil || made == nil {
		return *o, false, err
	}
	before := made
	made = before.DeepCopy()
	if remove, err = suspend(made); err != nil || remove || equality.Semantic.DeepEqual(before.Object, made.Object) {
		return *o, remove, err
	}
	suspended = *o
	suspended.source = &source{manifest: made, request: &request{}}
	suspended.Desired.Digest = plan.SuspendedDigest(o.Desired.Digest, digestOf(made.Object, o.Confidential))
	kept := slices.Clone(o.Settings.IgnoreFields)
	suspended.Settings.IgnoreFields = slices.DeleteFunc(kept, func(pointer string) bool {
		return !equality.Semantic.DeepEqual(valueAt(before.Object, pointer), valueAt(made.Object, pointer))
	})
	if o.Confidential {
		of := &item{common: &common{traits: traits{kind: made.GroupVersionKind()}}}
		suspended.Data = of.fingerprints(made.Object)
	}
	return suspended, false, nil
}

// valueAt returns the value at a JSON pointer; nil if there is none.
func valueAt(content map[string]any, pointer string) any {
	parsed, err := jsonpointer.New(pointer)
	if err != nil {
		return nil
	}
	value, _, err := parsed.Get(content)
	if err != nil {
		return nil
	}
	return value
}

// Given returns an object with a manifest and nothing else.
func Given(manifest *unstructured.Unstructured) Object {
	return Object{source: &source{manifest: manifest, request: &request{}}}
}
