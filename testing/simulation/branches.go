package simulation

import (
	"context"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/internal/branching"
	"github.com/espalier-dev/espalier/testing/internal/random"
)

// withPace returns a context in which the branches of a tree begin in an order that the seed decides, each at a moment
// of its own: one begins when all goroutines wait that the ones before it have started.
func withPace(ctx context.Context, seed uint64, actor string) context.Context {
	return branching.WithPace(ctx, branching.Pace{
		Order: func(place string, count int) []int {
			now := strconv.FormatInt(time.Now().UnixNano(), 10)
			return random.Source(seed, "branches", actor, place, now).Perm(count)
		},
		Wait: func(place int) { time.Sleep(time.Duration(1+place) * time.Nanosecond) },
	})
}
