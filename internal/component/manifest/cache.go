package manifest

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache remembers what was prepared in the last request, so that an object that was generated the same again is not
// prepared again. It knows objects by a hash of their content and not by their address, because a generator may change
// what it has returned. It keeps the little that a plan has to know of an object. It does not keep the content, which
// is generated in each request anyway. The zero value is empty. It is used by one request at a time.
type Cache struct {
	key     cacheKey
	entries []entry
	common  commonByHash
	// consistent reports whether the entries are known to go together, and whole whether each has its items.
	consistent, whole bool
	// same reports whether the last request had the same objects as the one before, in the same order.
	same bool
}

// Snapshot is what a [Cache] remembered at one time.
type Snapshot struct{ entries []entry }

// Snapshot returns what the cache remembers, for [Cache.ChangedSince].
func (c *Cache) Snapshot() Snapshot { return Snapshot{c.entries} }

// Same reports whether the objects that were prepared last are those that were prepared before.
func (c *Cache) Same() bool { return c.same }

// cacheKey has the options that all items depend on.
type cacheKey struct {
	texts                 [7]string
	reapplyInterval       time.Duration
	scheme, generatorOnly *runtime.Scheme
}

func cacheKeyOf(o *Options) cacheKey {
	texts := [...]string{
		o.Prefix, o.Namespace, string(o.AdoptionPolicy), string(o.ReconcilePolicy), string(o.UpdatePolicy),
		string(o.DeletePolicy), string(o.PrunePolicy),
	}
	return cacheKey{texts, o.ReapplyInterval, o.Scheme, o.GeneratorScheme}
}

// hashOf returns a hash of a generated object, and 0 if it has none. The hash covers the values of Secrets, too.
func hashOf(object client.Object) uint64 {
	if sum, ok := digest.Of(object); ok {
		return sum
	}
	return 0
}

// entry is what became of one object that was generated.
type entry struct {
	hash uint64
	// items are nil if the object has to be prepared.
	items []*item
}

// lookup returns an entry for each object, with items for objects that the last request had, too. same reports whether
// it had all of them, in the same order, and no others.
func (c *Cache) lookup(objects []client.Object, options *Options) (entries []entry, same bool) {
	if key := cacheKeyOf(options); c.key != key {
		*c = Cache{key: key}
	}
	if c.common == nil {
		c.common = commonByHash{}
	}
	entries = make([]entry, len(objects))
	same = len(objects) == len(c.entries)
	for i, object := range objects {
		e := &entries[i]
		e.hash = hashOf(object)
		if i < len(c.entries) && e.hash != 0 && c.entries[i].hash == e.hash {
			e.items = c.entries[i].items
		} else {
			same = false
		}
	}
	if !same {
		c.lookupMoved(entries)
	}
	return entries, same
}

// Unchanged reports whether Prepare would return the same objects as it did last, for the same component digest and a
// cluster that serves the same kinds. It is false if that is not certain.
func (c *Cache) Unchanged(objects []client.Object, options *Options) bool {
	if !c.consistent || c.key != cacheKeyOf(options) || len(objects) != len(c.entries) {
		return false
	}
	for i, object := range objects {
		if sum := hashOf(object); sum == 0 || sum != c.entries[i].hash {
			return false
		}
	}
	return true
}

// lookupMoved finds objects that are not at their place any more. No items are used twice.
func (c *Cache) lookupMoved(entries []entry) {
	moved := make(map[uint64]int, len(c.entries))
	for i, e := range c.entries {
		if e.hash != 0 && (i >= len(entries) || entries[i].items == nil) {
			moved[e.hash] = i
		}
	}
	for i := range entries {
		e := &entries[i]
		if from, ok := moved[e.hash]; ok && e.items == nil {
			e.items = c.entries[from].items
			delete(moved, e.hash)
		}
	}
}

// keep remembers entries, except for faulty objects. same is the result of lookup. consistent reports whether all
// entries were prepared and go together.
func (c *Cache) keep(entries []entry, same, consistent bool) {
	c.whole = true
	for n := range entries {
		e := &entries[n]
		if e.hash == 0 || slices.ContainsFunc(e.items, func(i *item) bool { return i.fault != nil }) {
			*e = entry{}
			c.whole = false
		}
		for _, i := range e.items {
			// A list would have to be converted as a whole for each item.
			if i.place == "" {
				i.content = nil
			}
		}
	}
	if !same {
		c.common = commonByHash{}
		for _, e := range entries {
			for _, i := range e.items {
				c.common[i.hash] = i.common
			}
		}
	}
	c.entries, c.consistent, c.same = entries, consistent, same
}

// common is what many objects have in common. Items share it, so that it takes memory once.
type common struct {
	traits
	// hash is the hash of the traits.
	hash uint64
	// home is the namespace of the object, if it is namespaced; "" if none is known.
	home string
	// desired is what is in force, without the values of the object itself.
	desired plan.Desired
}

// traits are what an object says itself of what is in common.
type traits struct {
	kind schema.GroupVersionKind
	// namespace as it was generated.
	namespace string
	settings  generator.Settings
}

// commonByHash has what the items of a cache have in common, by the hash of the traits.
type commonByHash map[uint64]*common

// of returns what objects with such traits have in common. It shares no text with what was generated, because a name
// may be a part of a text that is much longer.
func (known commonByHash) of(t traits, options *Options) *common {
	hash, ok := digest.Of(&t)
	if c := known[hash]; ok && c != nil && reflect.DeepEqual(c.traits, t) {
		return c
	}
	for _, text := range []*string{&t.kind.Group, &t.kind.Version, &t.kind.Kind, &t.namespace} {
		*text = strings.Clone(*text)
	}
	home := cmp.Or(t.namespace, options.Namespace)
	c := &common{traits: t, hash: hash, home: home, desired: desired(t.settings, options)}
	c.desired.Group, c.desired.Kind, c.desired.Version = c.kind.Group, c.kind.Kind, c.kind.Version
	known[hash] = c
	return c
}
