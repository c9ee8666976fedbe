package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// pause is how long a step may be looked at before the next one.
const pause = 4 * time.Second

// repeat serves the live page, and plays the steps again and again until ctx ends.
func (d Demo) repeat(ctx context.Context, out io.Writer, options Options) (err error) {
	scenario, address, err := d.OpenWithPage(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scenario.Operator.Stop()) }()
	_, err = fmt.Fprintf(out, "\nThe page of the operator is at %s until Ctrl-C. "+
		"The demo goes on again and again meanwhile.\n", address)
	if err != nil {
		return err
	}
	if err := scenario.playAgainAndAgain(ctx, pause); ctx.Err() == nil {
		return err
	}
	return nil
}

// playAgainAndAgain plays the steps, and begins again with the second one: the operator is started once. It returns an
// error when a step fails, or when ctx ends.
func (s *Scenario) playAgainAndAgain(ctx context.Context, pause time.Duration) error {
	for {
		p := &printer{out: s.Out, start: time.Now()}
		for i := range s.Steps {
			if i == 0 && s.Operator.Failure() == nil {
				continue
			}
			if err := s.playStep(ctx, p, i); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
	}
}
