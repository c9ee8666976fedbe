// Package shards_test has stories of an operator whose processes share its resources: they join and leave, die, are cut
// off, stand still, and lose their Leases, and the webhook of the sharder is away.
package shards_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func TestMain(m *testing.M) { stories.Main(m) }
