package manifest

import (
	"reflect"
	"strings"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class is what many objects have in common. Items share it, so that it takes memory once.
type class struct {
	traits
	// print is the digest of the traits.
	print uint64
	// home is the namespace of the object, if it is namespaced; "" if none is known.
	home string
	// desired is what is in force, without what is the object's own.
	desired plan.Desired
}

// traits tell classes apart, since options are the same for all classes of a cache.
type traits struct {
	kind schema.GroupVersionKind
	// namespace as it was generated.
	namespace string
	settings  component.Settings
}

// newClass returns a class that shares no text with what was generated: a name may be a part of a text that is much longer.
func newClass(t traits, options *Options) *class {
	t.kind.Group, t.kind.Version, t.kind.Kind = strings.Clone(t.kind.Group), strings.Clone(t.kind.Version), strings.Clone(t.kind.Kind)
	t.namespace = strings.Clone(t.namespace)
	c := &class{traits: t, home: t.namespace, desired: desired(t.settings, options)}
	if c.home == "" {
		c.home = options.Namespace
	}
	c.desired.Group, c.desired.Kind, c.desired.Version = c.kind.Group, c.kind.Kind, c.kind.Version
	return c
}

// classes are those that the items of a cache are of, by their print.
type classes map[uint64]*class

// of returns the class of objects with such traits.
func (known classes) of(t traits, options *Options) *class {
	print, ok := digest.Of(&t)
	if !ok {
		return newClass(t, options)
	}
	if c := known[print]; c != nil && reflect.DeepEqual(c.traits, t) {
		return c
	}
	c := newClass(t, options)
	c.print = print
	known[print] = c
	return c
}

// classesOf returns the classes that entries need.
func classesOf(entries []entry) classes {
	used := classes{}
	for _, e := range entries {
		for _, i := range e.items {
			if i.print != 0 {
				used[i.print] = i.class
			}
		}
	}
	return used
}
