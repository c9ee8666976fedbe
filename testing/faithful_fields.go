package testing

import "fmt"

// faithfulFields are the fields of a case that only rows of NodeTests and RootTests may set.
type faithfulFields struct {
	faithful, virtual bool
	fault             Fault
	replays           Replays
	externals         []External
	until             Until
}

// problem returns what is wrong with the fields, empty if nothing is.
func (f faithfulFields) problem() string {
	for i, external := range f.externals {
		if external.Reset == nil || external.End == nil {
			return fmt.Sprintf("Externals[%d] needs a Reset and an End", i)
		}
	}
	if f.faithful {
		return ""
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Fault", !f.fault.isZero()}, {"Replays", !f.replays.isZero()},
		{"Externals", f.externals != nil}, {"Until", f.until != Until{}},
	} {
		if field.set {
			return field.name + " needs a faithful API server: make the row one of NodeTests or RootTests"
		}
	}
	return ""
}

// reset resets the externals.
func (f faithfulFields) reset() {
	for _, external := range f.externals {
		external.Reset()
	}
}
