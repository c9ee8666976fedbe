package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// state is the state of a store. Tables and records are replaced, never changed, so a copy of the maps is a fork.
type state struct {
	revision int64
	// given is the last resource version that was made up for a given object.
	given int64
	// generated counts the names that were generated.
	generated int
	// collected is the revision at which there was no garbage; 0 if that is not known.
	collected int64
	tables    map[schema.GroupKind]table
	// taken are the resource versions below firstRevision that given objects came with.
	taken map[int64]bool
	// ended counts the objects of a name that were removed.
	ended map[Key]int
	// definitions has the versions of the kinds that are, or were, defined; nil if they are not any more. The map is
	// replaced, never changed.
	definitions map[schema.GroupKind]map[string]*resource
	// journal has all changes, oldest first.
	journal []change
}

// change is one entry of the journal. One of the two records may be nil.
type change struct {
	revision      int64
	before, after *record
	manager       string
}

// record returns the record after the change, or before it if the change removed the object.
func (c change) record() *record {
	if c.after != nil {
		return c.after
	}
	return c.before
}

func (c change) key() Key { return c.record().key() }

func newState() state {
	return state{
		revision: firstRevision, tables: map[schema.GroupKind]table{}, taken: map[int64]bool{}, ended: map[Key]int{},
	}
}

func (st *state) fork() state {
	fork := *st
	fork.tables = maps.Clone(st.tables)
	fork.ended = maps.Clone(st.ended)
	fork.taken = maps.Clone(st.taken)
	fork.journal = slices.Clip(st.journal)
	return fork
}

// kinds returns the kinds that have or had objects, in a fixed order.
func (st *state) kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(st.tables), func(a, b schema.GroupKind) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
	})
}

// find returns the record of an object, nil if there is none.
func (st *state) find(key Key) *record { return st.tables[key.Kind].find(key.Namespace, key.Name) }

// since returns the changes after a revision.
func (st *state) since(revision int64) []change {
	i, _ := slices.BinarySearchFunc(st.journal, revision+1, func(c change, r int64) int {
		return cmp.Compare(c.revision, r)
	})
	return st.journal[i:]
}

// at returns the objects of a kind as of an earlier revision. Given objects have always been there.
func (st *state) at(kind schema.GroupKind, revision int64) table {
	t := st.tables[kind]
	changes := st.since(revision)
	for _, c := range slices.Backward(changes) {
		switch {
		case c.record().gvk.GroupKind() != kind:
		case c.before == nil:
			t = t.without(c.after)
		default:
			t = t.with(c.before)
		}
	}
	return t
}

// put replaces the record of an object, or adds it. It does not raise the revision.
func (st *state) put(r *record) {
	kind := r.gvk.GroupKind()
	st.tables[kind] = st.tables[kind].with(r)
}

// remove takes a record away. It does not raise the revision.
func (st *state) remove(r *record) {
	key := r.key()
	st.tables[key.Kind] = st.tables[key.Kind].without(r)
	st.ended[key]++
}

// table has the records of a kind in the order of their keys, namespace/name, as an API server lists them. It is
// replaced, never changed.
type table []*record

func (t table) search(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(t, struct{}{}, func(r *record, _ struct{}) int {
		if r.namespace != namespace {
			return strings.Compare(r.namespace+"/", namespace+"/")
		}
		return strings.Compare(r.name, name)
	})
}

func (t table) find(namespace, name string) *record {
	if i, found := t.search(namespace, name); found {
		return t[i]
	}
	return nil
}

func (t table) with(r *record) table {
	i, found := t.search(r.namespace, r.name)
	next := make(table, 0, len(t)+1)
	next = append(append(next, t[:i]...), r)
	if found {
		i++
	}
	return append(next, t[i:]...)
}

func (t table) without(r *record) table {
	i, found := t.search(r.namespace, r.name)
	if !found {
		return t
	}
	return append(append(make(table, 0, len(t)-1), t[:i]...), t[i+1:]...)
}

// in returns the records of a namespace, or all if it is empty.
func (t table) in(namespace string) table {
	if namespace == "" {
		return t
	}
	start, _ := t.search(namespace, "")
	end := start
	for end < len(t) && t[end].namespace == namespace {
		end++
	}
	return t[start:end]
}

// from returns the records that do not come before a name.
func (t table) from(namespace, name string) table {
	i, _ := t.search(namespace, name)
	return t[i:]
}
