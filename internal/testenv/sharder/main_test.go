package sharder_test

import (
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }
