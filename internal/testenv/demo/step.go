package storytelling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Step is something that somebody does in a world W, and what comes of it.
type Step[W any] struct {
	// Title says what is done, in a few words.
	Title string
	// Admission is set for a step that needs the operator's webhooks.
	Admission bool
	// Do does it. Optional.
	Do func(ctx context.Context, world W) error
	// Show is printed below the title, once done. Optional.
	Show func(world W) string
	// Facts come true in the end, in this order.
	Facts []Fact[W]
}

// Fact is something that is expected to become true by itself.
type Fact[W any] struct {
	// Text states the fact, in one line.
	Text string
	// Holds returns nil when the fact is true, and otherwise what is missing. It is called again and again.
	Holds func(ctx context.Context, world W) error
	// Show is printed below the text, once the fact is true. Optional.
	Show func(world W) string
}

const (
	// pollInterval is how often a fact is looked at until it is true.
	pollInterval = 10 * time.Millisecond
	// Patience is how long that may take by default. Namespaces take some seconds to go, and clients take as long to
	// notice that their API server is back.
	Patience = time.Minute
)

// Teller tells stories in a world W.
type Teller[W any] struct {
	// World is the one that the story is told in.
	World W
	// Out is where the story is printed. Default: nowhere.
	Out io.Writer
	// Patience is how long a fact may take to come true. Default: a minute.
	Patience time.Duration
	// Webhooks: steps that need them can be told. They are left out otherwise.
	Webhooks bool
	// AfterDo is called in each step when its deed is done, before the facts are looked at. An error ends the story.
	// Optional.
	AfterDo func(ctx context.Context, step Step[W]) error
	// Failure returns an error as long as no fact can come true. Optional.
	Failure func() error
}

// Tell goes through the steps and prints them. It stops at the first that fails: the error names the step and the fact.
func (t Teller[W]) Tell(ctx context.Context, steps []Step[W]) error {
	t.Patience = cmp.Or(t.Patience, Patience)
	if t.Out == nil {
		t.Out = io.Discard
	}
	p := &printer{out: t.Out}
	steps = slices.DeleteFunc(slices.Clone(steps), func(step Step[W]) bool { return step.Admission && !t.Webhooks })
	for i, step := range steps {
		p.title(i+1, step.Title)
		if err := t.take(ctx, p, step); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.Title, errors.Join(err, p.err))
		}
	}
	p.summary(len(steps))
	return p.err
}

// take carries out one step.
func (t Teller[W]) take(ctx context.Context, p *printer, step Step[W]) error {
	start := time.Now()
	if step.Do != nil {
		if err := step.Do(ctx, t.World); err != nil {
			return err
		}
	}
	if t.AfterDo != nil {
		if err := t.AfterDo(ctx, step); err != nil {
			return err
		}
	}
	if step.Show != nil {
		p.show(step.Show(t.World))
	}
	for _, fact := range step.Facts {
		if err := t.await(ctx, fact); err != nil {
			p.fact(false, fact.Text, time.Since(start))
			return err
		}
		p.fact(true, fact.Text, time.Since(start))
		if fact.Show != nil {
			p.show(fact.Show(t.World))
		}
	}
	return nil
}

// await returns when the fact is true, or will not become so.
func (t Teller[W]) await(ctx context.Context, fact Fact[W]) error {
	err := Eventually(ctx, t.Patience, func(ctx context.Context) error {
		var failure error
		if t.Failure != nil {
			failure = t.Failure()
		}
		return errors.Join(failure, fact.Holds(ctx, t.World))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", fact.Text, err)
	}
	return nil
}

// Eventually returns nil as soon as holds does, and else its last error, when patience has come to an end.
func Eventually(ctx context.Context, patience time.Duration, holds func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		err := holds(ctx)
		if ctx.Err() == nil || last == nil {
			// An error that only says that time is up would hide the reason.
			last = err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("not so after %s: %w", patience, last)
	}
}

// AllOf holds when all of the checks do.
func AllOf[W any](checks ...func(ctx context.Context, world W) error) func(ctx context.Context, world W) error {
	return func(ctx context.Context, world W) error {
		for _, holds := range checks {
			if err := holds(ctx, world); err != nil {
				return err
			}
		}
		return nil
	}
}
