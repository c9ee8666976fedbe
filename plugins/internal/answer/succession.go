package answer

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/message"
)

// Last says which source has answered last for an owner, and for which generation of it. An owner that has its
// dependents from before that was recorded has no source.
type Last struct {
	Source     string
	Generation int64
}

// maxShown is how many dependents an error names.
const maxShown = 3

// CheckNext returns an error if an answer must not take the place of the last one: it is of another source, or has none
// of the dependents that exist, although neither the owner has changed nor the answer says that it drops them all.
// Existing are the keys of dependents. One that is only read keeps none of them.
func (l Last) CheckNext(next Last, existing []string, dependents []Dependent, dropsAll bool) error {
	const way = "they stay until its answer says drops_all, or the spec of the owner changes"
	keeps := func(d Dependent) bool { return !d.ReadOnly && slices.Contains(existing, d.Key()) }
	switch {
	case len(existing) == 0, dropsAll, l.Generation != next.Generation:
		return nil
	case l.Source != "" && l.Source != next.Source:
		return fmt.Errorf("the dependents that exist are those of %s: %s", l.Source, way)
	case !slices.ContainsFunc(dependents, keeps):
		return fmt.Errorf("it has none of the dependents that exist, %s: %s", message.List(existing, maxShown), way)
	}
	return nil
}
