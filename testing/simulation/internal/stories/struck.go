package stories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

// Struck counts the faults that strike in a story which is told many times. It is safe for concurrent use.
type Struck struct {
	mu    sync.Mutex
	tells int
	sorts map[faults.Sort]int
}

// Count adds the faults of a world.
func (s *Struck) Count(w *simulation.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorts == nil {
		s.sorts = map[faults.Sort]int{}
	}
	s.tells++
	for _, f := range w.Happened() {
		s.sorts[f.Sort]++
	}
}

// String returns how often each sort of fault struck.
func (s *Struck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d times the story was told; faults that struck:", s.tells)
	for _, sort := range slices.Sorted(maps.Keys(s.sorts)) {
		fmt.Fprintf(&text, " %s %d", sort, s.sorts[sort])
	}
	return text.String()
}
