// Package replicas_test has stories of two processes of one operator that work at the same time, without leader
// election.
package replicas_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func TestMain(m *testing.M) { stories.Main(m) }
