package time_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	rtime "github.com/espalier-dev/espalier/time"
)

var pinned = time.Date(2025, 2, 3, 4, 5, 6, 7, time.UTC)

func TestL10TimeIsReadFromTheRequest(t *testing.T) {
	tests := map[string]struct {
		ctx  func(context.Context) context.Context
		want time.Time
	}{
		"pinned": {
			func(ctx context.Context) context.Context { return rtime.StashNow(ctx, pinned) },
			pinned,
		},
		"the outermost pin wins": {
			func(ctx context.Context) context.Context {
				return rtime.StashNow(rtime.StashNow(ctx, pinned), pinned.Add(time.Hour))
			},
			pinned,
		},
		"the zero time is a time": {
			func(ctx context.Context) context.Context {
				return rtime.StashNow(rtime.StashNow(ctx, time.Time{}), pinned)
			},
			time.Time{},
		},
		"seen from a child context": {
			func(ctx context.Context) context.Context { return context.WithoutCancel(rtime.StashNow(ctx, pinned)) },
			pinned,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rtime.RetrieveNow(tc.ctx(t.Context())); !got.Equal(tc.want) {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}

func TestWithoutAPinItIsThePresent(t *testing.T) {
	before := time.Now()
	got := rtime.RetrieveNow(t.Context())
	if got.Before(before) || got.After(time.Now()) {
		t.Errorf("want the present, got %s", got)
	}
}

// Whoever reads the time during a request reads the same one.
func Example() {
	ctx := rtime.StashNow(context.Background(), time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC))

	fmt.Println(rtime.RetrieveNow(ctx))
	fmt.Println(rtime.RetrieveNow(ctx))
	// Output:
	// 2025-02-03 04:05:06 +0000 UTC
	// 2025-02-03 04:05:06 +0000 UTC
}
