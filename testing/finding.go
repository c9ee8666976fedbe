package testing

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/replay"
)

// fail fails the test for what replays have found.
func (r *replayed) fail(t *testing.T, _ context.Context, findings []replay.Finding, _ replay.Options) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("%s\n  story: %s\n  %s", Fault{f.Faults}, f.Story, strings.Join(f.Differences, "\n  "))
	}
	_ = fmt.Sprint
}
