package observe

import (
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

// state is what is kept of one component. It is guarded by the lock of the [Watching].
type state struct {
	watcher types.NamespacedName
	uid     types.UID
	// turn is held by the Observe under way.
	turn chan struct{}
	// order are the entries by index of what the component was interested in last.
	order []*entry
	// extra are entries that were made since.
	extra []*entry
	round uint64
	// paused counts those that keep it from being woken.
	paused int
	// unseen are entries with news that no Observe has told yet. urgent tells that there is other news, quiet that there is
	// news that nobody is in a hurry for.
	unseen        map[*entry]struct{}
	urgent, quiet bool
}

// notice takes in that there is news of an entry.
func (s *state) notice(e *entry, b *bell) {
	if b.low {
		s.hint(b)
		return
	}
	s.unseen[e] = struct{}{}
	if s.paused == 0 {
		b.add(s.watcher, false)
	}
}

// urge takes in that there is news that is not of one entry.
func (s *state) urge(b *bell) {
	s.urgent = true
	if s.paused == 0 {
		b.add(s.watcher, false)
	}
}

// hint takes in that there is news, but nothing that anybody would be in a hurry for.
func (s *state) hint(b *bell) {
	s.quiet = true
	if s.paused == 0 {
		b.add(s.watcher, true)
	}
}

// told takes in that all news was told.
func (s *state) told() {
	clear(s.unseen)
	s.urgent, s.quiet = false, false
}

// resume ends a pause.
func (s *state) resume(b *bell) {
	if s.paused--; s.paused > 0 {
		return
	}
	if urgent := s.urgent || len(s.unseen) > 0; urgent || s.quiet {
		b.add(s.watcher, !urgent)
	}
}

// bell collects whom to wake, for when no lock is held.
type bell struct {
	// low: what is noticed is not urgent.
	low   bool
	names []types.NamespacedName
	quiet map[types.NamespacedName]bool
}

func (b *bell) add(name types.NamespacedName, low bool) {
	before, known := b.quiet[name]
	if !known {
		b.names = append(b.names, name)
	}
	if b.quiet == nil {
		b.quiet = map[types.NamespacedName]bool{}
	}
	b.quiet[name] = low && (before || !known)
}

func (b *bell) ring(wake func(name types.NamespacedName, low bool)) {
	if wake == nil {
		return
	}
	for _, name := range b.names {
		wake(name, b.quiet[name])
	}
}

// enter takes over what the component is interested in.
func (w *Watching) enter(s *state, interests []Interest) {
	s.round++
	before, order := s.order, s.order
	changed := len(before) != len(interests)
	if changed {
		order = make([]*entry, len(interests))
	}
	for i := range interests {
		in := &interests[i]
		var e *entry
		if i < len(before) && before[i].is(in.Key) {
			e = before[i]
		} else {
			if !changed {
				changed, order = true, append([]*entry(nil), before...)
			}
			e = w.find(s, in.Key)
		}
		first := e == nil
		if first {
			e = w.newEntry(s, in.Key)
		}
		e.set(in, first)
		e.round = s.round
		order[i] = e
	}
	s.order = order
	if changed {
		w.dropUnwanted(s, before)
	}
	w.dropUnwanted(s, s.extra)
	s.extra = nil
}

func (w *Watching) dropUnwanted(s *state, entries []*entry) {
	for _, e := range entries {
		if e.round != s.round && e.cell != nil {
			w.dropEntry(e)
		}
	}
}

// find returns the entry of a component for an object, nil if it has none.
func (w *Watching) find(s *state, key plan.Key) *entry {
	k := w.kinds[key.GroupKind()]
	if k == nil {
		return nil
	}
	c := k.cells[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
	if c == nil {
		return nil
	}
	return c.of(s)
}

func (w *Watching) newEntry(s *state, key plan.Key) *entry {
	gk := key.GroupKind()
	k := w.kinds[gk]
	if k == nil {
		k = newKind(gk)
		w.kinds[gk] = k
	}
	k.users[s]++
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	e := &entry{state: s, kind: k, name: name, cell: k.cellOf(name)}
	e.cell.add(e)
	return e
}

// dropEntry ends an interest, and the watch of the type if it was the last one.
func (w *Watching) dropEntry(e *entry) {
	k, s := e.kind, e.state
	e.cell.remove(e)
	e.cell = nil
	k.sweep(e.name)
	delete(s.unseen, e)
	if k.users[s]--; k.users[s] > 0 {
		return
	}
	delete(k.users, s)
	if len(k.users) > 0 {
		return
	}
	k.stopped = true
	if k.stop != nil {
		k.stop()
	}
	delete(w.kinds, k.GroupKind)
}

// drop ends all interest of a component.
func (w *Watching) drop(s *state) {
	// An object may be among them twice.
	s.round++
	w.dropUnwanted(s, s.order)
	w.dropUnwanted(s, s.extra)
	s.order, s.extra = nil, nil
	delete(w.states, s.watcher)
}
