package replay

import "github.com/espalier-dev/espalier/testing/internal/store"

// points returns the faults that are worth a run, in the order of the calls of a run without a fault. At one call,
// deaths come before lost answers, since they are easier to understand. The journal has the changes of each cluster
// since the beginning, oldest first.
//
// A run with a fault is left out if it would be the same as another: a new instance knows nothing of the old one, so
// two deaths in the same state of the world are one, and so is a death before anything happened and no death. The same
// call fails once in a state.
func points(calls []*call, journal map[*cluster][]store.Change) []Fault {
	if len(calls) == 0 {
		return nil
	}
	var faults []Fault
	add := func(sort Sort, c *call) {
		faults = append(faults, Fault{Sort: sort, Call: c.name, Occurrence: c.occurrence})
	}
	died := map[state]bool{calls[0].before: true}
	failed := map[failure]bool{}
	caches := caches{journal: journal, shown: map[clusterKind]int64{}}
	for _, c := range calls {
		if !died[c.before] {
			died[c.before] = true
			add(DiesBefore, c)
		}
		if at := (failure{c.name, c.before}); !failed[at] {
			failed[at] = true
			add(Fails, c)
		}
		if c.rewrites() {
			add(Conflicts, c)
		}
		if c.cached() && caches.lag(c) {
			add(Stale, c)
		}
		if !died[c.after] {
			died[c.after] = true
			add(DiesAfter, c)
		}
		if c.effective() {
			add(LosesAnswer, c)
		}
	}
	return faults
}

// failure is a call that fails in a state of the world.
type failure struct {
	call string
	state
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
