package manifest

import (
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache remembers what was prepared in the last request, so that an object that was generated the same again is not prepared
// again. It knows objects by a digest of their content, not by their address: a generator may change what it has returned. It
// keeps what a plan has to know of an object, which is little, and not its content, which is generated again in each request
// anyway. The zero value is empty. It is used by one request at a time.
type Cache struct {
	basis   basis
	entries []entry
	classes classes
	// sound: no two of the entries contradict each other.
	sound bool
}

// basis are the options that all items depend on.
type basis struct {
	prefix, namespace string
	adoptionPolicy    apis.AdoptionPolicy
	reconcilePolicy   apis.ReconcilePolicy
	updatePolicy      apis.UpdatePolicy
	deletePolicy      apis.DeletePolicy
	prunePolicy       apis.PrunePolicy
	reapplyInterval   time.Duration
	scheme            *runtime.Scheme
}

func basisOf(o *Options) basis {
	return basis{
		prefix: o.Prefix, namespace: o.Namespace,
		adoptionPolicy: o.AdoptionPolicy, reconcilePolicy: o.ReconcilePolicy, updatePolicy: o.UpdatePolicy,
		deletePolicy: o.DeletePolicy, prunePolicy: o.PrunePolicy,
		reapplyInterval: o.ReapplyInterval, scheme: o.Scheme,
	}
}

// entry is what became of one object that was generated.
type entry struct {
	// print is the digest of the object as it was generated, if it has one.
	print    uint64
	hasPrint bool
	// items are nil if it is not known what becomes of it.
	items []*item
}

// recall returns an entry for each object. Those have items whose objects were there in the last request, too. same tells that
// all were, in the same order, and no other.
func (c *Cache) recall(objects []client.Object, options *Options) (entries []entry, same bool) {
	if is := basisOf(options); c.basis != is {
		*c = Cache{basis: is}
	}
	if c.classes == nil {
		c.classes = classes{}
	}
	entries = make([]entry, len(objects))
	same = len(objects) == len(c.entries)
	for i, object := range objects {
		e := &entries[i]
		e.print, e.hasPrint = digest.Of(object)
		if i < len(c.entries) && e.hasPrint && c.entries[i].print == e.print && c.entries[i].hasPrint {
			e.items = c.entries[i].items
		} else {
			same = false
		}
	}
	if !same {
		c.recallMoved(entries)
	}
	return entries, same
}

// recallMoved finds what is not at its place any more. No items are given out twice.
func (c *Cache) recallMoved(entries []entry) {
	moved := make(map[uint64]int, len(c.entries))
	for i, e := range c.entries {
		if e.hasPrint && (i >= len(entries) || entries[i].items == nil) {
			moved[e.print] = i
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.items != nil || !e.hasPrint {
			continue
		}
		if from, ok := moved[e.print]; ok {
			e.items = c.entries[from].items
			delete(moved, e.print)
		}
	}
}

// keep remembers entries, but for faulty objects. same is what recall told, sound tells that all of them were prepared, and go
// together.
func (c *Cache) keep(entries []entry, same, sound bool) {
	for n := range entries {
		e := &entries[n]
		e.hasPrint = e.hasPrint && !slices.ContainsFunc(e.items, func(i *item) bool { return i.fault != nil })
		if !e.hasPrint {
			e.items = nil
		}
		for _, i := range e.items {
			// A list would have to be made again as a whole for each item.
			if i.place == "" {
				i.content = nil
			}
		}
	}
	if !same {
		c.classes = classesOf(entries)
	}
	c.entries, c.sound = entries, sound
}
