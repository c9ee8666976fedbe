package observe

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store takes in what a watch shows.
type store struct {
	watching *Watching
	kind     *kind
}

var (
	_ cache.TransformingStore      = (*store)(nil)
	_ cache.ResourceVersionUpdater = (*store)(nil)
)

// see returns what is kept of an object.
func (s *store) see(object any) (any, error) {
	switch o := object.(type) {
	case *shown:
		return o, nil
	case *corev1.Secret:
		return &shown{name: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, sight: s.watching.lens.secret(o)}, nil
	case metav1.Object:
		return &shown{
			name:  types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
			sight: s.watching.lens.metadata(o),
		}, nil
	}
	return nil, errors.New("an object without metadata")
}

// Transformer lets client-go keep as little of an object as we do.
func (s *store) Transformer() cache.TransformFunc { return s.see }

// Add implements [cache.ReflectorStore].
func (s *store) Add(object any) error { return s.show(object, false) }

// Update implements [cache.ReflectorStore].
func (s *store) Update(object any) error { return s.show(object, false) }

// Delete implements [cache.ReflectorStore].
func (s *store) Delete(object any) error { return s.show(object, true) }

func (s *store) show(object any, deleted bool) error {
	seen, err := s.see(object)
	if err != nil {
		return err
	}
	o := seen.(*shown)
	s.watching.locked(func(b *bell) {
		if s.kind.stopped {
			return
		}
		version := o.sight.version
		if deleted {
			o.sight = nil
		}
		b.low = !s.kind.known
		s.kind.show(o.name, o.sight, version, b)
		s.watching.bringing(s.kind)
	})
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s *store) Replace(objects []any, version string) error {
	all := make(map[types.NamespacedName]*sight, len(objects))
	for _, object := range objects {
		seen, err := s.see(object)
		if err != nil {
			return err
		}
		o := seen.(*shown)
		all[o.name] = o.sight
	}
	s.watching.locked(func(b *bell) {
		if s.kind.stopped {
			return
		}
		b.low = !s.kind.known
		s.kind.replace(all, version, b)
		s.kind.listed = true
		s.watching.enliven(s.kind, b)
		s.watching.bringing(s.kind)
	})
	return nil
}

// Resync implements [cache.ReflectorStore]. There is nothing to do: nobody is told the same twice.
func (s *store) Resync() error { return nil }

// UpdateResourceVersion takes in up to which version the watch has shown everything.
func (s *store) UpdateResourceVersion(version string) {
	s.watching.mu.Lock()
	defer s.watching.mu.Unlock()
	s.kind.progress = version
}
