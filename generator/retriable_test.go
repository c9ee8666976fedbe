package generator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/generator"
)

func TestRetriableError(t *testing.T) {
	after := func(d time.Duration) *time.Duration { return &d }
	for name, tc := range map[string]struct {
		after *time.Duration
		wrap  func(err error) error
		want  *time.Duration
	}{
		"itself":       {after(time.Second), func(err error) error { return err }, after(time.Second)},
		"no time":      {nil, func(err error) error { return err }, nil},
		"no wait":      {after(0), func(err error) error { return err }, nil},
		"negative":     {after(-time.Second), func(err error) error { return err }, nil},
		"wrapped":      {after(time.Second), func(err error) error { return fmt.Errorf("hook 0: %w", err) }, after(time.Second)},
		"among others": {after(time.Second), func(err error) error { return errors.Join(errors.New("other"), fmt.Errorf("x: %w", err)) }, after(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.wrap(generator.NewRetriableError(errBroken, tc.after))
			var retriable *generator.RetriableError
			if !errors.As(err, &retriable) {
				t.Fatalf("the error is %v, want a %T in it", err, retriable)
			}
			if !errors.Is(err, errBroken) || retriable.Error() != "broken" {
				t.Errorf("the error is %v, want the cause %v", err, errBroken)
			}
			got := retriable.RetryAfter()
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRetriableErrorOfNothing(t *testing.T) {
	if err := generator.NewRetriableError(nil, nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	for _, empty := range []*generator.RetriableError{nil, {}} {
		if empty.Error() == "" || empty.Unwrap() != nil || empty.RetryAfter() != nil {
			t.Errorf("an empty one has %q, %v and %v, want a text alone", empty.Error(), empty.Unwrap(),
				empty.RetryAfter())
		}
	}
}

func TestRetryAfterIsACopy(t *testing.T) {
	d := time.Second
	var retriable *generator.RetriableError
	errors.As(generator.NewRetriableError(errBroken, &d), &retriable)
	d = time.Hour
	*retriable.RetryAfter() = time.Hour
	if got := *retriable.RetryAfter(); got != time.Second {
		t.Errorf("it is tried again after %s, want 1s", got)
	}
}
