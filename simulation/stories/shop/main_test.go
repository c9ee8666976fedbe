package shop_test

import (
	"testing"

	"github.com/espalier-dev/espalier/simulation/stories"
)

func TestMain(m *testing.M) { stories.Main(m) }
