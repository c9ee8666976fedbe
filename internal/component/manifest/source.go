package manifest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrChanged means that somebody has changed what was generated, although it is not yet done with.
var ErrChanged = errors.New("what was generated for it was changed before it could be written")

// request is what the sources of one request share.
type request struct {
	options *Options
	// lock keeps methods of generated objects, which may be of any type and may have things in common, from being called at the
	// same time.
	lock sync.Mutex
}

// source is where the manifest of an object comes from in one request. Few objects are written in a request, and none between
// two, so a manifest is made when it is asked for.
type source struct {
	generated client.Object
	// print is the digest of what was generated when it was prepared, if it had one.
	print    uint64
	hasPrint bool
	// namespace is that of the manifest.
	namespace string

	*request
	// content is what was generated, checked and stripped, in its own namespace; nil if it is not made.
	content  map[string]any
	manifest *unstructured.Unstructured
}

// stripped returns the content.
func (s *source) stripped() (map[string]any, error) {
	if s.content != nil {
		return s.content, nil
	}
	var err error
	s.content, err = s.remake()
	return s.content, err
}

func (s *source) remake() (map[string]any, error) {
	// A digest that covers the values of Secrets, too.
	if print, ok := digest.Of(s.generated); !ok || !s.hasPrint || print != s.print {
		return nil, ErrChanged
	}
	content, err := contentOf(s.generated, s.options.Scheme)
	if err == nil {
		_, errs := strip(content, s.options.Prefix)
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, fmt.Errorf("its manifest cannot be made again: %w", err)
	}
	return content, nil
}

// made returns the manifest.
func (s *source) made() (*unstructured.Unstructured, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.manifest != nil {
		return s.manifest, nil
	}
	content, err := s.stripped()
	if err != nil {
		return nil, err
	}
	s.manifest = &unstructured.Unstructured{Object: inNamespace(content, s.namespace)}
	s.content = nil
	return s.manifest, nil
}

// Manifest returns the object as it is to be written, without the marks of the component. It is the same each time, and made the
// first time, from what was generated: there is an [ErrChanged] if that has changed since. It is nil for the zero Object. It is safe
// for concurrent use.
func (o *Object) Manifest() (*unstructured.Unstructured, error) {
	if o.source == nil {
		return nil, nil
	}
	return o.source.made()
}

// Data returns what is desired of the data of a confidential object: by key, in base64, as the manifest has it.
func (o *Object) Data() (map[string]string, error) {
	manifest, err := o.Manifest()
	if err != nil || manifest == nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(manifest.Object, "data")
	return data, nil
}

// Given returns an object with that manifest, and nothing else.
func Given(manifest *unstructured.Unstructured) Object {
	return Object{source: &source{manifest: manifest, request: &request{}}}
}
