// Package gate has gates: switches for a feature, for one of its objects, or for a change of an object.
//
//	on, err := gate.Enabled(gate.All(
//		gate.When(resource.Spec.Tracing),
//		gate.Version(resource.Spec.Version, ">= 2.4"),
//	))
//
// A nil gate is on, in this package and wherever a gate is a field. A gate holds what it was made from, so it is made
// for each request.
package gate

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Gate says whether something is on. An error means that it is not known.
type Gate interface {
	Enabled() (bool, error)
}

// ErrInvalid marks an error of a gate that stays until the resource or the operator changes, such as that of an invalid
// version. A feature or an object with such a gate is not retried. It is matched with errors.Is, so it may be wrapped
// and joined.
var ErrInvalid = errors.New("the gate is invalid")

// invalid marks an error without a change of its text.
type invalid struct{ error }

func (i invalid) Unwrap() []error { return []error{i.error, ErrInvalid} }

// Enabled returns what a gate says. A nil gate is on, also one that is a nil pointer or a nil function.
func Enabled(gate Gate) (bool, error) {
	if gotype.IsNil(gate) {
		return true, nil
	}
	return gate.Enabled()
}

// When returns a gate that is on if the condition holds.
func When(condition bool) Gate {
	return boolean(condition)
}

type boolean bool

func (b boolean) Enabled() (bool, error) {
	return bool(b), nil
}

// Func returns a gate that calls a function each time it is asked. A nil function is an [ErrInvalid] of Enabled.
func Func(enabled func() (bool, error)) Gate {
	return function{enabled: enabled}
}

type function struct {
	enabled func() (bool, error)
}

var errNoFunction = invalid{errors.New("the gate has no function")}

func (f function) Enabled() (bool, error) {
	if f.enabled == nil {
		return false, errNoFunction
	}
	return f.enabled()
}

// All returns a gate that is on if all gates are, and if there are none. It asks them in order, up to the first that is
// off or returns an error. A nil gate is on.
func All(gates ...Gate) Gate {
	return several{gates: gates, until: false}
}

// Any returns a gate that is on if one of the gates is. It is off if there are none. It asks them in order, up to the
// first that is on or returns an error. A nil gate is on.
func Any(gates ...Gate) Gate {
	return several{gates: gates, until: true}
}

// several asks gates until one says so.
type several struct {
	gates []Gate
	until bool
}

func (s several) Enabled() (bool, error) {
	for i, gate := range s.gates {
		on, err := Enabled(gate)
		if err != nil {
			return false, fmt.Errorf("gate %d: %w", i, err)
		}
		if on == s.until {
			return on, nil
		}
	}
	return !s.until, nil
}

// Not returns a gate that is on if the other is off. The opposite of a nil gate is off.
func Not(gate Gate) Gate {
	return not{gate: gate}
}

type not struct {
	gate Gate
}

func (n not) Enabled() (bool, error) {
	on, err := Enabled(n.gate)
	return !on && err == nil, err
}
