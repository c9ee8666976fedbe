package dependents_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine is left. The tables do not run on an API server: some of them create Services and
// Deployments, in which it allocates and defaults more than the store in memory does.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
