package observe

import (
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

// componentState is what is kept of one component. It is guarded by the lock of the [Watching].
type componentState struct {
	key componentKey
	uid types.UID
	// sem is held by the Observe under way.
	sem chan struct{}
	// entries has an entry for each interest of the last Observe, in its order, and then entries that Wrote has added
	// since.
	entries []*entry
	round   uint64
	// names are the watches by name.
	names []*nameWatch
	// paused counts the calls of Pause that were not resumed.
	paused int
	// pending are entries with news that Observe has not returned yet; nil stands for news about a type. pendingLow is
	// true if there is also news that is not urgent.
	pending    map[*entry]struct{}
	pendingLow bool
	// observed reports whether the entries come from an Observe. settled is the last result of isSettled, and false if
	// it may have become true since.
	observed, settled bool
}

// notify records news about an object, or about a type if e is nil, and wakes the component unless it is paused.
func (s *componentState) notify(e *entry, w *wakeups) {
	if w.low {
		s.pendingLow = true
	} else {
		s.pending[e] = struct{}{}
	}
	if s.paused == 0 {
		w.add(s.key.NamespacedName, w.low)
	}
}

// wakeups collects the components to be woken, for when the lock is not held any more.
type wakeups struct {
	// low is true while news is recorded that is not urgent.
	low bool
	// lowOf has the components, with true if none of their news is urgent.
	lowOf map[types.NamespacedName]bool
}

func (w *wakeups) add(name types.NamespacedName, low bool) {
	before, known := w.lowOf[name]
	if w.lowOf == nil {
		w.lowOf = map[types.NamespacedName]bool{}
	}
	w.lowOf[name] = low && (before || !known)
}

// locked calls f under the lock, and afterwards wakes the components that f has collected.
func (w *Watching) locked(f func(wake *wakeups)) {
	var wake wakeups
	func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f(&wake)
	}()
	if w.options.Wake != nil {
		for name, low := range wake.lowOf {
			w.options.Wake(name, low)
		}
	}
}

// lookUp returns the state of a component, nil if it has none. It drops the state of a component with another UID.
func (w *Watching) lookUp(c *Component) *componentState {
	s := w.states[c.key()]
	if s != nil && s.uid != c.UID {
		w.drop(s)
		return nil
	}
	return s
}

// stateOf returns the state of a component, and makes it if there is none.
func (w *Watching) stateOf(c *Component) *componentState {
	s := w.lookUp(c)
	if s == nil {
		s = &componentState{key: c.key(), uid: c.UID, pending: map[*entry]struct{}{}, sem: make(chan struct{}, 1)}
		w.states[c.key()] = s
	}
	return s
}

// setInterests stores the interests of an Observe. An idle component has the same interests in the same order.
func (w *Watching) setInterests(s *componentState, interests []Interest) {
	s.round++
	s.observed, s.settled = true, false
	before := s.entries
	s.entries = make([]*entry, len(interests))
	for i := range interests {
		in := &interests[i]
		var e *entry
		if i < len(before) && before[i].is(in.Key) {
			e = before[i]
		} else if e = w.find(s, in.Key); e == nil {
			e = w.addEntry(s, in.Key)
		}
		w.set(e, in)
		e.round, s.entries[i] = s.round, e
	}
	for _, e := range before {
		// An object may be among the entries twice.
		if e.round != s.round && e.slot != nil {
			w.dropEntry(e)
		}
	}
}

// find returns the entry of a component for an object, nil if it has none.
func (w *Watching) find(s *componentState, key plan.Key) *entry {
	if t := w.types[key.GroupKind()]; s != nil && t != nil {
		if at := t.slots[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]; at != nil {
			for _, e := range at.entries {
				if e.state == s {
					return e
				}
			}
		}
	}
	return nil
}

func (w *Watching) addEntry(s *componentState, key plan.Key) *entry {
	gk := key.GroupKind()
	t := w.types[gk]
	if t == nil {
		t = &watchedType{
			GroupKind: gk,
			slots:     map[types.NamespacedName]*slot{},
			users:     map[*componentState]int{},
			signal:    make(chan struct{}, 1),
		}
		w.types[gk] = t
	}
	t.users[s]++
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	e := &entry{state: s, typ: t, name: name, slot: t.slotOf(name)}
	e.slot.entries = append(e.slot.entries, e)
	return e
}

// dropEntry ends an interest, and the watch of the type if it was the last one.
func (w *Watching) dropEntry(e *entry) {
	t, s := e.typ, e.state
	w.setDefines(e, nil)
	e.slot.entries = slices.DeleteFunc(e.slot.entries, func(other *entry) bool { return other == e })
	e.slot = nil
	w.endNameWatch(e)
	t.dropEmpty(e.name)
	delete(s.pending, e)
	if t.users[s]--; t.users[s] > 0 {
		return
	}
	delete(t.users, s)
	if len(t.users) > 0 {
		return
	}
	t.stopped = true
	if t.stop != nil {
		t.stop()
	}
	delete(w.types, t.GroupKind)
}

// drop ends all interests of a component.
func (w *Watching) drop(s *componentState) {
	w.setInterests(s, nil)
	delete(w.states, s.key)
}

// Pause implements [Observer].
func (w *Watching) Pause(c Component) (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stateOf(&c)
	s.paused++
	return sync.OnceFunc(func() {
		w.locked(func(wake *wakeups) {
			if w.states[c.key()] != s {
				return
			}
			s.paused--
			if urgent := len(s.pending) > 0; s.paused == 0 && (urgent || s.pendingLow) {
				wake.add(s.key.NamespacedName, !urgent)
			}
		})
	})
}

// Release implements [Observer].
func (w *Watching) Release(c Component) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.states[c.key()]; s != nil && (c.UID == "" || s.uid == c.UID) {
		w.drop(s)
	}
}
