package cascade_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func TestMain(m *testing.M) { stories.Main(m) }
