package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/feature/gate"
)

var errOops = errors.New("oops")

// broken is a gate that must not be asked if it is nil.
type broken struct{ asked int }

func (b *broken) Enabled() (bool, error) {
	b.asked++
	return false, errOops
}

// lazy is a function that is a gate.
type lazy func() bool

func (l lazy) Enabled() (bool, error) { return l(), nil }

func TestEnabled(t *testing.T) {
	t.Parallel()
	on, off := gate.When(true), gate.When(false)
	fails := gate.Func(func() (bool, error) { return true, errOops })
	for name, tc := range map[string]struct {
		gate gate.Gate
		want bool
		err  string
	}{
		"nil":                      {gate: nil, want: true},
		"nil pointer":              {gate: (*broken)(nil), want: true},
		"nil function type":        {gate: lazy(nil), want: true},
		"function type":            {gate: lazy(func() bool { return false }), want: false},
		"true":                     {gate: on, want: true},
		"false":                    {gate: off, want: false},
		"function":                 {gate: gate.Func(func() (bool, error) { return true, nil }), want: true},
		"nil function":             {gate: gate.Func(nil), err: "the gate has no function"},
		"all of none":              {gate: gate.All(), want: true},
		"all on":                   {gate: gate.All(on, nil, (*broken)(nil), on), want: true},
		"one off":                  {gate: gate.All(on, off, fails), want: false},
		"error before the one off": {gate: gate.All(on, fails, off), err: "gate 1: oops"},
		"any of none":              {gate: gate.Any(), want: false},
		"any, all off":             {gate: gate.Any(off, off), want: false},
		"any, one on":              {gate: gate.Any(off, on, fails), want: true},
		"any, one nil":             {gate: gate.Any(off, nil), want: true},
		"any, error first":         {gate: gate.Any(fails, on), err: "gate 0: oops"},
		"not on":                   {gate: gate.Not(on), want: false},
		"not off":                  {gate: gate.Not(off), want: true},
		"not nil":                  {gate: gate.Not(nil), want: false},
		"not known":                {gate: gate.Not(&broken{}), err: "oops"},
		"nested":                   {gate: gate.All(on, gate.Any(off, gate.Not(off))), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tc.gate, tc.want, tc.err)
		})
	}
}

// check asks twice: the answer must not depend on what was asked before.
func check(t *testing.T, g gate.Gate, want bool, wantErr string) {
	t.Helper()
	for range 2 {
		got, err := gate.Enabled(g)
		switch {
		case wantErr == "" && err != nil:
			t.Errorf("Enabled says %v, want no error", err)
		case wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), wantErr)):
			t.Errorf("the error is %v, not %s", err, wantErr)
		case wantErr != "" && errors.Is(err, gate.ErrInvalid) == errors.Is(err, errOops):
			t.Errorf("the error %v is an ErrInvalid: %t, want it only if asking again is of no use", err,
				errors.Is(err, gate.ErrInvalid))
		case wantErr == "" && got != want:
			t.Errorf("Enabled is %t, not %t", got, want)
		}
	}
}

func TestAskedOnlyIfNeeded(t *testing.T) {
	t.Parallel()
	asked := &broken{}
	for _, gate := range []gate.Gate{
		gate.All(gate.When(false), asked), gate.Any(gate.When(true), asked),
	} {
		if _, err := gate.Enabled(); err != nil || asked.asked > 0 {
			t.Errorf("the gate that decides nothing was asked %d times (%v), want none", asked.asked, err)
		}
	}
	if _, err := gate.All(asked).Enabled(); !errors.Is(err, errOops) {
		t.Errorf("the error is %v, want it to wrap %v", err, errOops)
	}
	if _, err := gate.All(gate.Not(gate.Func(nil))).Enabled(); !errors.Is(err, gate.ErrInvalid) {
		t.Errorf("the error is %v, want it to wrap %v", err, gate.ErrInvalid)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version, constraint string
		want                bool
		err                 string
	}{
		{version: "1.4.0", constraint: ">= 1.4", want: true},
		{version: "1.3.9", constraint: ">= 1.4"},
		{version: "v1.4.1", constraint: ">= 1.4", want: true},
		{version: "1.4", constraint: "= 1.4.0", want: true},
		{version: "2", constraint: "^2", want: true},
		{version: "3.2.0", constraint: "1.x || >= 3.2", want: true},
		{version: "2.2.0", constraint: "1.x || >= 3.2"},
		{version: "2.5.0", constraint: ">= 1.4, < 3", want: true},
		{version: "2.5.0", constraint: ">= 1.4 < 2.5"},
		{version: "1.5.0", constraint: "1.2 - 1.4.5"},
		{version: "1.4.5-rc.1", constraint: "1.2 - 1.4.5", want: true},
		{version: "0.0.0", constraint: "*", want: true},

		{version: "2.0.0-rc.1", constraint: ">= 1.0", want: true},
		{version: "2.0.0-rc.1", constraint: ">= 2.0", want: true},
		{version: "2.0.0-rc.1", constraint: "< 2.0"},
		{version: "2.0.0-rc.1", constraint: "^2.0.0", want: true},
		{version: "2.0.0-rc.1", constraint: "^1.2"},
		{version: "2.0.0-rc.1", constraint: "= 2.0.0", want: true},
		{version: "2.0.0-rc.1", constraint: "*", want: true},
		{version: "v1.33.2-eks-1b2c3d4", constraint: ">= 1.33.2", want: true},
		{version: "2.0.0-rc.1", constraint: ">= 2.0.0-rc.2"},
		{version: "2.0.0-rc.3", constraint: ">= 2.0.0-rc.2", want: true},
		{version: "2.0.0", constraint: ">= 2.0.0-rc.2", want: true},
		{version: "2.0.0-rc.1", constraint: "< 2.0.0-0 || >= 2.0.0-rc.1", want: true},
		{version: "1.9.0", constraint: ">= 2.0.0-0"},
		{version: "2.1.0-rc.1", constraint: ">= 2.0.0-0", want: true},
		{version: "2.0.0+build-7", constraint: ">= 2.0.0+a-b", want: true},
		{version: "2.0.0-rc.1", constraint: ">= 2.0.0+a-b", want: true},

		{version: "", constraint: ">= 1", err: `version "" is invalid: `},
		{version: "latest", constraint: ">= 1", err: `version "latest" is invalid: `},
		{version: "latest", constraint: "???", err: `version "latest" is invalid: `},
		{version: "1.0.0", constraint: "newer", err: `version constraint "newer" is invalid: `},
		{version: "1.0.0", constraint: "", err: `version constraint "" is invalid: it is empty`},
		{version: "1.0.0", constraint: " \t", err: `version constraint " \t" is invalid: it is empty`},
	} {
		t.Run(tc.version+" "+tc.constraint, func(t *testing.T) {
			t.Parallel()
			check(t, gate.Version(tc.version, tc.constraint), tc.want, tc.err)
		})
	}
}

// Of a constraint and its opposite exactly one is on, for any version: otherwise a pre-release gets both or neither.
func TestVersionIsOnOneSide(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.9.9", "2.0.0-alpha", "2.0.0-rc.1", "2.0.0", "2.0.1-rc.1+b", "2.1.0"} {
		for _, bound := range []string{"2", "2.0", "2.0.0", "2.0.0-rc.1", "2.0.0-0"} {
			above, err := gate.Version(version, ">= "+bound).Enabled()
			below, errBelow := gate.Version(version, "< "+bound).Enabled()
			if above == below || err != nil || errBelow != nil {
				t.Errorf("%s is at least %s: %t, and before it: %t, want one of both (%v, %v)", version, bound, above,
					below, err, errBelow)
			}
		}
	}
}

func FuzzVersion(f *testing.F) {
	f.Add("1.2.3-rc.1+b", ">= 1.2, < 2 || ~3.4-0")
	f.Add("v1", "1.2 - 1.4")
	f.Fuzz(func(t *testing.T, version, constraint string) {
		gate := gate.Version(version, constraint)
		on, err := gate.Enabled()
		if on && err != nil {
			t.Errorf("the gate is on with the error %v, want it off, or no error", err)
		}
	})
}
