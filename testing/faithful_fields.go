package testing

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// faithfulFields are the fields of a case that only rows of NodeTests and RootTests may set.
type faithfulFields struct {
	faithful, virtual bool
	// built says that a WithClientBuilder takes the place of the faithful API server of a config.
	built     bool
	fault     Fault
	replays   Replays
	externals []External
	until     Until
}

// problem returns what is wrong with the fields, empty if nothing is.
func (f faithfulFields) problem() string {
	for i, external := range f.externals {
		if external.Reset == nil || external.End == nil {
			return fmt.Sprintf("Externals[%d] needs a Reset and an End", i)
		}
	}
	if f.fault.problem != "" {
		return "Fault: " + f.fault.problem
	}
	for i, skipped := range f.replays.Skip {
		if skipped.problem != "" {
			return fmt.Sprintf("Replays.Skip[%d]: %s", i, skipped.problem)
		}
	}
	reason := ": make the row one of NodeTests or RootTests"
	switch {
	case f.faithful && !f.built:
		return ""
	case f.faithful:
		reason = ", which a WithClientBuilder replaces"
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Fault", !f.fault.isZero()}, {"Replays", !f.replays.isZero()},
		{"Externals", f.externals != nil}, {"Until", f.until != Until{}},
	} {
		if field.set {
			return field.name + " needs a faithful API server" + reason
		}
	}
	return ""
}

// builds reports whether a config of a row has a builder of a fake client.
func builds(own func(*fake.ClientBuilder) *fake.ClientBuilder, additional map[string]ExpectConfig) bool {
	for _, c := range additional {
		if c.WithClientBuilder != nil {
			return true
		}
	}
	return own != nil
}

// reset resets the externals.
func (f faithfulFields) reset() {
	for _, external := range f.externals {
		external.Reset()
	}
}
