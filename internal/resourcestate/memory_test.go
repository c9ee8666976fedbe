package resourcestate_test

import (
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/internal/resourcestate"
)

// A node remembers something of each of its children, and forgets all when there are too many.
func TestMemoryIsByChild(t *testing.T) {
	var memory resourcestate.Memory[int]
	child := func(i int) resourcestate.Child { return resourcestate.Child{Name: "child-" + strconv.Itoa(i)} }
	check := func(i, want int) {
		t.Helper()
		if got := memory.Get(child(i)); got != want {
			t.Errorf("of child %d it remembers %d, want %d", i, got, want)
		}
	}
	check(0, 0)
	for i := range 3 {
		memory.Put(child(i), i+1)
	}
	memory.Put(child(0), 10)
	memory.Put(child(2), 30)
	for i, want := range []int{10, 2, 30, 0} {
		check(i, want)
	}
	const many = 5_000
	for i := 3; i < many; i++ {
		memory.Put(child(i), i+1)
	}
	check(many-1, many)
	kept := 0
	for i := range many {
		if memory.Get(child(i)) != 0 {
			kept++
		}
	}
	if kept >= many/2 {
		t.Errorf("it remembers %d of %d children, want that there is a limit", kept, many)
	}
}

// Most nodes have one child.
func TestMemoryOfOneChildIsSmall(t *testing.T) {
	child := resourcestate.Child{Name: "child"}
	memories := make([]resourcestate.Memory[int], 11) // with the run that does not count
	if allocations := testing.AllocsPerRun(10, func() {
		memory := &memories[0]
		memories = memories[1:]
		memory.Put(child, 1)
		memory.Put(child, 2)
	}); allocations > 0 {
		t.Errorf("to remember something of one child takes %v allocations, want 0", allocations)
	}
}
