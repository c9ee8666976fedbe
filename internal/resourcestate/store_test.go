package resourcestate_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder is a value that records what is done with it.
type recorder struct {
	mu      sync.Mutex
	evicted []time.Time
	// empty is what Evict returns.
	empty  bool
	closed int
}

func (r *recorder) Evict(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evicted = append(r.evicted, now)
	return r.empty
}

// Close returns an error, which must not keep other values from being closed.
func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return errors.New("closed")
}

var (
	_     resourcestate.Evictor = (*recorder)(nil)
	nameA                       = types.NamespacedName{Namespace: "ns", Name: "a"}
	nameB                       = types.NamespacedName{Namespace: "ns", Name: "b"}
)

// keep stores a recorder under key.
func keep(state *resourcestate.State, key any) *recorder {
	return resourcestate.LoadOrStore(state, key, func() *recorder { return &recorder{} })
}

func TestEachResourceHasAStateOfItsOwn(t *testing.T) {
	var store resourcestate.Store
	a, b := store.Of(object("a", "1", "1")), store.Of(object("b", "2", "1"))
	if a == b {
		t.Fatalf("two resources have one state %p, want two", a)
	}
	if again := store.Of(object("a", "1", "7")); again != a {
		t.Errorf("a newer version of a resource has the state %p, want %p", again, a)
	}
	if store.Lookup(nameA) != a || store.Lookup(nameB) != b {
		t.Errorf("Lookup by name finds %p and %p, want %p and %p", store.Lookup(nameA), store.Lookup(nameB), a, b)
	}
	inA, inB := keep(a, "key"), keep(b, "key")
	if inA == inB || keep(a, "key") != inA || keep(a, "other") == inA {
		t.Errorf("values are not told apart by state and key (%p, %p), want one for each", inA, inB)
	}
	var keys []any
	store.Each(func(name types.NamespacedName, key, value any) {
		if name == nameA && value == any(inA) {
			keys = append(keys, key)
		}
	})
	if !slices.Equal(keys, []any{"key"}) || store.Len() != 2 {
		t.Errorf("Each finds the value under %v and there are %d states, want [key] and 2", keys, store.Len())
	}
}

func TestLoadOfAnotherType(t *testing.T) {
	state := new(resourcestate.Store).Of(object("a", "1", "1"))
	if _, ok := resourcestate.Load[*recorder](state, "key"); ok {
		t.Error("Load finds what was not stored, want nothing")
	}
	kept := keep(state, "key")
	if found, ok := resourcestate.Load[*recorder](state, "key"); !ok || found != kept {
		t.Errorf("Load finds %p (%t), want what was stored, %p", found, ok, kept)
	}
	if _, ok := resourcestate.Load[string](state, "key"); ok {
		t.Error("Load finds a value of another type, want nothing")
	}
	if got := resourcestate.LoadOrStore(state, "key", func() string { return "new" }); got != "new" {
		t.Errorf(`LoadOrStore returns %q in place of a value of another type, want "new"`, got)
	}
	if _, ok := resourcestate.Load[*recorder](state, "key"); ok {
		t.Error("Load finds the value of another type, want it replaced")
	}
}

func TestValuesAreClosedWithTheirResource(t *testing.T) {
	of := func(uid types.UID) func(*resourcestate.Store) {
		return func(s *resourcestate.Store) { s.Of(object("a", uid, "2")) }
	}
	tests := map[string]struct {
		do         func(*resourcestate.Store)
		closed     int
		successors bool
	}{
		"nothing":            {do: func(*resourcestate.Store) {}},
		"another is gone":    {do: func(s *resourcestate.Store) { s.Forget(nameB) }},
		"it is seen again":   {do: of("1")},
		"it is gone":         {do: func(s *resourcestate.Store) { s.Forget(nameA) }, closed: 1},
		"it is gone twice":   {do: func(s *resourcestate.Store) { s.Forget(nameA); s.Forget(nameA) }, closed: 1},
		"another took over":  {do: of("9"), closed: 1, successors: true},
		"an older one again": {do: of(""), closed: 1, successors: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var store resourcestate.Store
			state := store.Of(object("a", "1", "1"))
			values := []*recorder{keep(state, 1), keep(state, 2)}
			resourcestate.LoadOrStore(state, 3, func() string { return "not a closer" })
			tc.do(&store)
			for i, value := range values {
				if value.closed != tc.closed {
					t.Errorf("value %d was closed %d times, want %d", i, value.closed, tc.closed)
				}
			}
			if now := store.Lookup(nameA); tc.successors && (now == nil || now == state) {
				t.Errorf("the state of the successor is %p, want one of its own, not %p", now, state)
			} else if !tc.successors && tc.closed > 0 && now != nil {
				t.Errorf("the state of a resource that is gone is still %p, want none", now)
			}
			if _, ok := resourcestate.Load[string](state, 3); ok == (tc.closed > 0) {
				t.Errorf("that the values are there is %t, want %t", ok, !ok)
			}
		})
	}
}

func TestAStateOutlivesTheCreateOfItsResource(t *testing.T) {
	var store resourcestate.Store
	state := store.Of(object("a", "", ""))
	value := keep(state, "key")
	store.SetUID(nameA, state, "1")
	if store.Of(object("a", "1", "1")) != state || value.closed > 0 {
		t.Errorf("the state after the create is %p, closed %v, want %p, not closed", store.Of(object("a", "1", "1")),
			value.closed, state)
	}
	store.SetUID(nameA, state, "2")
	if store.Of(object("a", "1", "2")) != state {
		t.Errorf("the state of another UID is %p, want %p: the UID was replaced", store.Of(object("a", "1", "2")),
			state)
	}
	other := store.Of(object("b", "", ""))
	store.SetUID(nameA, other, "3")
	if store.Of(object("b", "", "")) != other {
		t.Errorf("the state without a UID is %p, want %p: it got the UID of another one",
			store.Of(object("b", "", "")), other)
	}
}

func TestTheEndOfARequestEvicts(t *testing.T) {
	var store resourcestate.Store
	state, other := store.Of(object("a", "1", "1")), store.Of(object("b", "2", "1"))
	kept, dropped, others := keep(state, "kept"), keep(state, "dropped"), keep(other, "others")
	resourcestate.LoadOrStore(state, "no evictor", func() string { return "" })
	dropped.empty = true
	state.EndRequest(start)
	state.EndRequest(start.Add(time.Second))
	if want := []time.Time{start, start.Add(time.Second)}; !slices.Equal(kept.evicted, want) {
		t.Errorf("Evict was called at %v, want %v", kept.evicted, want)
	}
	if len(dropped.evicted) != 1 {
		t.Errorf("Evict of an empty value was called %d times, want once", len(dropped.evicted))
	}
	if len(others.evicted) != 0 {
		t.Errorf("Evict was called %d times for the value of another resource, want not at all", len(others.evicted))
	}
	if _, ok := resourcestate.Load[*recorder](state, "dropped"); ok {
		t.Error("an empty value is still there, want it dropped")
	}
	for _, key := range []any{"kept", "no evictor"} {
		if _, isRecorder := resourcestate.Load[*recorder](state, key); !isRecorder {
			if _, isText := resourcestate.Load[string](state, key); !isText {
				t.Errorf("the value %q was dropped, want it kept", key)
			}
		}
	}
}

func TestAStateKnowsTheWritesOfItsResource(t *testing.T) {
	var store resourcestate.Store
	state := store.Of(object("a", "1", "1"))
	cached := object("a", "1", "1")
	if got := state.Resolve(cached, start); got != client.Object(cached) {
		t.Errorf("without a write the resource is %v, want the cached one", got)
	}
	state.Wrote(object("a", "1", "2"), false, start)
	if got := state.Resolve(cached, start); got == nil || got.GetResourceVersion() != "2" {
		t.Errorf("after a write the resource is %v, want the version 2", got)
	}
	state.EndRequest(start)
	if got := state.Resolve(cached, start); got == nil || got.GetResourceVersion() != "2" {
		t.Errorf("after the end of the request the resource is %v, want the version 2", got)
	}
	state.Deleted(cached, start)
	if got := state.Resolve(cached, start); got != nil {
		t.Errorf("after a delete the resource is %v, want none", got)
	}
	state.EndRequest(start.Add(time.Hour))
	if got := state.Resolve(cached, start); got != client.Object(cached) {
		t.Errorf("an hour after the delete the resource is %v, want the cached one", got)
	}

	state.Wrote(object("a", "1", "3"), true, start)
	if got, err := state.Unseen(t.Context(), nil, start); err != nil || got == nil || got.GetResourceVersion() != "3" {
		t.Errorf("what was created and is not seen is %v (%v), want the version 3", got, err)
	}
	state.Deleted(object("a", "1", "3"), start)
	if got, err := state.Unseen(t.Context(), nil, start); err != nil || got != nil {
		t.Errorf("after a delete, what was created and is not seen is %v (%v), want nothing", got, err)
	}
}

// Run with -race.
func TestAStoreIsUsedConcurrently(t *testing.T) {
	var store resourcestate.Store
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			name := []string{"a", "b"}[g%2]
			for i := range 200 {
				state := store.Of(object(name, types.UID(name), "1"))
				value := keep(state, i%3)
				state.Wrote(object(name, types.UID(name), "2"), i%2 == 0, start)
				state.Resolve(object(name, types.UID(name), "1"), start)
				if _, err := state.Unseen(t.Context(), nil, start); err != nil {
					t.Error(err)
				}
				state.EndRequest(start)
				store.Each(func(types.NamespacedName, any, any) {})
				store.SetUID(nameA, state, "a")
				if i%17 == 0 {
					store.Forget(types.NamespacedName{Namespace: "ns", Name: name})
				}
				if i%19 == 0 && value.Evict(start) {
					t.Error("a value that is not empty counts as empty, want that it does not")
				}
			}
		})
	}
	group.Wait()
	store.Forget(nameA)
	store.Forget(nameB)
	if store.Len() != 0 {
		t.Errorf("%d states are left, want none", store.Len())
	}
}
