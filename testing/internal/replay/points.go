package replay

import (
	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// kinds are the kinds of faults that are tried at each call, in this order: deaths come before lost answers, since they
// are easier to understand.
var kinds = []fault.Kind{
	fault.DiesBefore, fault.Fails, fault.Conflicts, fault.Stale, fault.DiesAfter, fault.LosesAnswer, fault.UserDeletes,
}

// points returns the calls of a run without a fault, with what is known of them. The journal has the changes of each
// cluster since the beginning, oldest first.
func points(calls []*call, journal map[*cluster][]store.Change) []fault.Point {
	caches := caches{journal: journal, shown: map[clusterKind]int64{}}
	var all []fault.Point
	for _, c := range calls {
		all = append(all, fault.Point{Call: c.point(), Known: &fault.Known{
			Before: c.before, After: c.after,
			Effective: c.effective(), Rewrites: c.rewrites(), Lags: c.cached() && caches.lag(c), Deletable: c.deletable,
		}})
	}
	return all
}

// caches are what caches have shown so far.
type caches struct {
	journal map[*cluster][]store.Change
	shown   map[clusterKind]int64
}

// lag reports whether the answer of a read may lag, and has the cache show everything.
func (s *caches) lag(c *call) bool {
	kind := c.kind()
	last := int64(0)
	for _, change := range s.journal[c.cluster] {
		if change.Key.Kind == kind.GroupKind && change.Revision <= c.revision {
			last = change.Revision
		}
	}
	lags := last > s.shown[kind]
	s.shown[kind] = max(last, s.shown[kind])
	return lags
}
