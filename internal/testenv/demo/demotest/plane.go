package demotest

import (
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// StartPlane starts a control plane of its own for a test, which then plays a scenario while others do.
func StartPlane(t testing.TB, options controlplane.Options) *controlplane.Environment {
	t.Helper()
	controlplanetest.SkipIfShort(t)
	env, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(env.Err(), env.Stop()); err != nil {
			t.Error(err)
		}
	})
	return env
}

// NewOptions connects to a control plane as an administrator, and as the users.
func NewOptions(t testing.TB, plane *controlplane.Environment, users ...string) demo.Options {
	t.Helper()
	options, err := demo.NewOptions(plane, users...)
	if err != nil {
		t.Fatal(err)
	}
	return options
}
