package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Step is something that somebody does, and what comes of it.
type Step struct {
	// Title says what is done, in a few words.
	Title string
	// Admission is set for a step that needs the operator's webhooks.
	Admission bool
	// Do does it. Optional.
	Do func(ctx context.Context, w *World) error
	// Show is printed below the title, once done. Optional.
	Show func(w *World) string
	// Facts come true in the end, in this order.
	Facts []Fact
}

// Fact is something that is expected to become true by itself.
type Fact struct {
	// Text states the fact, in one line.
	Text string
	// Holds returns nil when the fact is true, and otherwise what is missing. It is called again and again.
	Holds func(ctx context.Context, w *World) error
}

const (
	// pollInterval is how often a fact is looked at until it is true.
	pollInterval = 10 * time.Millisecond
	// defaultPatience is how long that may take. Namespaces take some seconds to go, and clients take as long to notice that
	// their API server is back.
	defaultPatience = time.Minute
)

// Tell goes through the steps and prints them. It stops at the first that fails: the error names the step and the fact.
func (w *World) Tell(ctx context.Context, steps []Step) error {
	p := &printer{out: w.options.Out}
	steps = slices.DeleteFunc(slices.Clone(steps), func(step Step) bool { return step.Admission && !w.options.Webhooks })
	for i, step := range steps {
		p.title(i+1, step.Title)
		if err := w.take(ctx, p, step); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.Title, errors.Join(err, p.err))
		}
	}
	p.summary(len(steps))
	return p.err
}

// take carries out one step.
func (w *World) take(ctx context.Context, p *printer, step Step) error {
	start := time.Now()
	if step.Do != nil {
		if err := step.Do(ctx, w); err != nil {
			return err
		}
	}
	if w.options.AfterDo != nil {
		if err := w.options.AfterDo(ctx, step); err != nil {
			return err
		}
	}
	if step.Show != nil {
		p.show(step.Show(w))
	}
	for _, fact := range step.Facts {
		if err := w.await(ctx, fact); err != nil {
			p.fact(false, fact.Text, time.Since(start))
			return err
		}
		p.fact(true, fact.Text, time.Since(start))
	}
	return nil
}

// await returns when the fact is true, or will not become so.
func (w *World) await(ctx context.Context, fact Fact) error {
	err := eventually(ctx, w.options.Patience, func(ctx context.Context) error {
		return errors.Join(w.operator.failure(), fact.Holds(ctx, w))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", fact.Text, err)
	}
	return nil
}

// eventually returns nil as soon as holds does, and else its last error, when patience has come to an end.
func eventually(ctx context.Context, patience time.Duration, holds func(context.Context) error) error {
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
