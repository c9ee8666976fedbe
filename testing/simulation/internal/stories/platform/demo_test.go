package platform_test

import (
	"testing"

	"github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// TestDemo plays the scenario of the demo. It starts the operator itself.
func TestDemo(t *testing.T) { stories.PlayDemo(t, scenario.Open, scenario.OperatorUser) }
