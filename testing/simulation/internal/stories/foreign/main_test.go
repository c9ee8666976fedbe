// Package foreign_test has the story of a resource that has objects which it cannot own.
package foreign_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func TestMain(m *testing.M) { stories.Main(m) }
