package demotest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// Before has something done before the step of that title.
func Before(t testing.TB, s *demo.Scenario, title string, do demo.Action) {
	t.Helper()
	i := slices.IndexFunc(s.Steps, func(step demo.Step) bool { return step.Title == title })
	if i < 0 {
		t.Fatalf("there is no step %q", title)
	}
	step := s.Steps[i].Do
	s.Steps[i].Do = func(ctx context.Context) error { return errors.Join(do(ctx), step(ctx)) }
}

// EachStepIsNeeded has the scenario fail at a step whose facts are all true before it is taken. The facts of a step in
// which nothing is done are that nothing happens.
func EachStepIsNeeded(t testing.TB, s *demo.Scenario) {
	t.Helper()
	for _, step := range s.Steps[1:] {
		if step.Do == nil {
			continue
		}
		Before(t, s, step.Title, func(ctx context.Context) error {
			holds := func(check demo.Check) bool { return check.Holds(ctx) == nil }
			if slices.ContainsFunc(step.Checks, func(check demo.Check) bool { return !holds(check) }) {
				return nil
			}
			return errors.New("its facts are true before it is taken")
		})
	}
}

// Sabotage is what has a scenario fail.
type Sabotage struct {
	// Step is the title of the step before which it is done.
	Step string
	Do   func(ctx context.Context, s *demo.Scenario) error
	// Want is a part of the error with which the scenario ends.
	Want string
}

// PlaySabotaged plays a scenario until it fails, and closes it. The test fails if one of the objects is left.
func PlaySabotaged(
	t *testing.T, open func(context.Context, demo.Options) (*demo.Scenario, error), options demo.Options,
	objects Objects, by Sabotage,
) {
	t.Helper()
	s, err := open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	Before(t, s, by.Step, func(ctx context.Context) error { return by.Do(ctx, s) })
	s.AfterDo = func(_ context.Context, step demo.Step) error {
		if step.Title == by.Step {
			// What is done may take its time. Only the facts that are false then are to fail soon.
			s.Patience = 3 * time.Second
		}
		return nil
	}
	if err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), by.Want) {
		t.Errorf("the scenario ended with %v, want %q", err, by.Want)
	}
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	objects.AreGone(t, options.Admin)
}
