package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// phase is how a type is known.
type phase int

const (
	// unresolved: nobody has asked yet whether the API server serves the type.
	unresolved phase = iota
	// starting: the watch has not shown yet what there is.
	starting
	// live: the watch tells. It is believed as well while it is interrupted.
	live
	// polled: there is no watch; objects are read by name.
	polled
	// missing: the API server does not serve the type.
	missing
)

// kind is what is known of one type. It is guarded by the lock of the [Watching].
type kind struct {
	schema.GroupKind
	confidential bool
	phase        phase
	// reason says why it is polled.
	reason string
	// resource is where it is served; empty if not known.
	resource schema.GroupVersionResource
	// doubted: the watch was told that the resource is not served there.
	doubted bool
	// cells are objects that the watch shows, or that somebody is interested in, by namespace and name.
	cells map[types.NamespacedName]*cell
	// users are the components with interest in the type, with how many objects.
	users map[*state]int
	// progress is the resource version up to which the watch has shown everything.
	progress string
	// listed and opened are the two halves of a watch that works.
	listed, opened bool
	// stream is the watch that is open; nil while there is none.
	stream *stream
	// known: it was live before.
	known bool
	// failures counts attempts to watch since it last worked.
	failures int
	// asked is when an Observe last asked whether the type is served, and epoch what the count of changes to types was then.
	asked time.Time
	epoch int
	// kick wakes the goroutine that waits for the type to be served.
	kick chan struct{}
	// stop ends the goroutine; nil if there is none. stopped tells that nobody is interested any more.
	stop    context.CancelFunc
	stopped bool
	// unlistable are namespaces in which the type may not be listed.
	unlistable map[string]bool
}

func newKind(gk schema.GroupKind) *kind {
	return &kind{
		GroupKind:    gk,
		confidential: gk == schema.GroupKind{Kind: "Secret"},
		cells:        map[types.NamespacedName]*cell{},
		users:        map[*state]int{},
		kick:         make(chan struct{}, 1),
	}
}

// cell is one object.
type cell struct {
	// sight is what the watch shows; nil if it shows nothing.
	sight *sight
	// first is the first of those who are interested. There is seldom another.
	first *entry
}

func (c *cell) each(f func(e *entry)) {
	for e := c.first; e != nil; e = e.next {
		f(e)
	}
}

func (c *cell) add(e *entry) {
	at := &c.first
	for *at != nil {
		at = &(*at).next
	}
	*at = e
}

func (c *cell) remove(e *entry) {
	for at := &c.first; *at != nil; at = &(*at).next {
		if *at == e {
			*at, e.next = e.next, nil
			return
		}
	}
}

func (c *cell) of(s *state) *entry {
	for e := c.first; e != nil; e = e.next {
		if e.state == s {
			return e
		}
	}
	return nil
}

// cellOf returns the cell of an object, which is made if need be.
func (k *kind) cellOf(name types.NamespacedName) *cell {
	c := k.cells[name]
	if c == nil {
		c = &cell{}
		k.cells[name] = c
	}
	return c
}

// sweep forgets a cell that is of no use.
func (k *kind) sweep(name types.NamespacedName) {
	if c := k.cells[name]; c != nil && c.sight == nil && c.first == nil {
		delete(k.cells, name)
	}
}

// current tells whether the watch shows the present, as far as a watch can: it may be interrupted.
func (k *kind) current() bool {
	return k.phase == live && k.listed && k.opened && k.stream != nil
}

// poke wakes the goroutine that waits for the type.
func (k *kind) poke() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// brings tells whether objects of the type make the API server serve other types.
func (k *kind) brings() bool {
	switch k.GroupKind {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return true
	}
	return false
}

// show takes in that the watch shows an object as it is at a resource version, or, if shown is nil, that it does not show it any more.
func (k *kind) show(name types.NamespacedName, shown *sight, version string, b *bell) {
	c := k.cells[name]
	if c == nil {
		if shown == nil {
			return
		}
		c = k.cellOf(name)
	}
	old := c.sight
	c.sight = shown
	c.each(func(e *entry) {
		if e.matters(old, shown, version) {
			e.state.notice(e, b)
		}
		e.settle(old, shown, version)
	})
	k.sweep(name)
}

// replace takes in all that there is, at a resource version.
func (k *kind) replace(all map[types.NamespacedName]*sight, version string, b *bell) {
	k.progress = version
	for name, c := range k.cells {
		switch shown := all[name]; {
		case shown != nil:
			k.show(name, shown, shown.version, b)
		case c.sight != nil:
			k.show(name, nil, version, b)
		default:
			// An answer that says it was there may now be refuted.
			c.each(func(e *entry) {
				if e.matters(nil, nil, version) {
					e.state.notice(e, b)
				}
				e.settle(nil, nil, version)
			})
		}
	}
	for name, shown := range all {
		if k.cells[name] == nil {
			k.cellOf(name).sight = shown
		}
	}
}

// shown is an object on its way from the API server to a cell.
type shown struct {
	name  types.NamespacedName
	sight *sight
}
