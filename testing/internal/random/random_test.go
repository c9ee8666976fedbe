package random_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/espalier-dev/espalier/testing/internal/random"
)

func TestSeed(t *testing.T) {
	draw := func(seed uint64) string {
		random.Seed(seed)
		return fmt.Sprint(rand.Int63(), wait.Jitter(time.Hour, 1), utilrand.String(5))
	}
	first := draw(1)
	if again := draw(1); again != first {
		t.Errorf("a seed gives %s and %s", first, again)
	}
	if other := draw(2); other == first {
		t.Errorf("two seeds give %s", first)
	}
}

func TestSource(t *testing.T) {
	if a, b := random.Source(1, "a", "b").Uint64(), random.Source(1, "a", "b").Uint64(); a != b {
		t.Errorf("a source gives %d and %d", a, b)
	}
	seen := map[uint64]bool{}
	for _, seed := range []uint64{1, 2} {
		for _, keys := range [][]string{nil, {""}, {"ab"}, {"a", "b"}, {"a", "b", ""}} {
			seen[random.Source(seed, keys...).Uint64()] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("10 sources give %d numbers", len(seen))
	}
}
