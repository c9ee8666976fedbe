package stories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// Struck counts the faults that strike in a story which is told many times. It is safe for concurrent use.
type Struck struct {
	mu    sync.Mutex
	tells int
	kinds map[fault.Kind]int
}

// Count adds the faults of a world.
func (s *Struck) Count(w *simulation.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil {
		s.kinds = map[fault.Kind]int{}
	}
	s.tells++
	for _, f := range w.Happened() {
		s.kinds[f.Kind]++
	}
}

// String returns how often each kind of fault struck.
func (s *Struck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d times the story was told; faults that struck:", s.tells)
	for _, kind := range slices.Sorted(maps.Keys(s.kinds)) {
		fmt.Fprintf(&text, " %s %d", kind, s.kinds[kind])
	}
	return text.String()
}
