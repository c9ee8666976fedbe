package fault

// Point is a call of a run in which nothing went wrong.
type Point struct {
	Call
	// Known is what the call did; nil if that is not known.
	Known *Known
}

// Known is what is known of a call.
type Known struct {
	// Before and After tell the states of the world around the call apart. They can be compared.
	Before, After any
	// Effective is set if the call had an effect.
	Effective bool
	// Rewrites is set if the call wrote an object that existed.
	Rewrites bool
	// Deletable is set if the user can delete the resource just before the call, which is work for somebody else.
	Deletable bool
	// Lags is set if a cache gave the answer, and had something to show that it had not shown before.
	Lags bool
}

// Points returns the faults of the kinds that are worth a run each, in the order of the calls, and at one call in that
// of the kinds. Of a call of which nothing is known these are all kinds that fit its verb.
//
// A run with a fault is left out if it would be the same as another: a new process knows nothing of the old one, so two
// deaths in the same state of the world are one, and so is a death before anything happened and no death. The same call
// fails once in a state.
func Points(calls []Point, kinds []Kind) []Fault {
	s := seen{}
	if len(calls) > 0 && calls[0].Known != nil {
		s.first(calls[0].Known.Before)
	}
	var faults []Fault
	for _, c := range calls {
		for _, kind := range kinds {
			if s.worth(kind, c) {
				faults = append(faults, At(c.Call, kind, 0))
			}
		}
	}
	return faults
}

// seen are the states in which a process has died, and calls with the states in which they have failed.
type seen map[any]bool

// first reports whether something is seen for the first time.
func (s seen) first(what any) bool {
	before := s[what]
	s[what] = true
	return !before
}

func (s seen) worth(kind Kind, c Point) bool {
	if c.Known == nil {
		return kind.Fits(c.Verb)
	}
	switch kind {
	case DiesBefore:
		return s.first(c.Known.Before)
	case DiesAfter:
		return s.first(c.Known.After)
	case Fails:
		return s.first(failure{c.Verb + " " + c.Path, c.Known.Before})
	case Conflicts:
		return c.Known.Rewrites
	case LosesAnswer:
		return c.Known.Effective
	case Stale:
		return c.Known.Lags
	case UserDeletes:
		return c.Known.Deletable && s.first(deletion{c.Known.Before})
	}
	return false
}

// deletion is a state of the world in which the user deletes the resource.
type deletion struct{ state any }

// failure is a call that fails in a state of the world.
type failure struct {
	call  string
	state any
}

// Spread returns up to n items, evenly spread, in their order. 0 stands for all.
func Spread[T any](items []T, n int) []T {
	if n <= 0 || len(items) <= n {
		return items
	}
	var some []T
	for i := range n {
		some = append(some, items[i*len(items)/n])
	}
	return some
}
