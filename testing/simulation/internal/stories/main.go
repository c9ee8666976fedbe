package stories

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	// It defines the flags.
	_ "github.com/espalier-dev/espalier/testing/simulation"
)

// garbage is how much garbage may be there before it is collected, in percent of what is in use. A world is small, and
// most of what it makes lives for a request: to collect that less often takes a third less time.
const garbage = 400

// few are how many seeds and faults stories are told with, unless a flag says otherwise. The stories are long, and all
// of the faults are tried, on a busy machine too.
var few = map[string]string{"simulation.seeds": "5", "simulation.faults": "20", "simulation.budget": "10m"}

// Main runs the tests of a package of stories. It keeps what the libraries say out of their output.
func Main(m *testing.M) {
	for name, n := range few {
		// The command line is read later, and so counts more.
		if err := flag.Set(name, n); err != nil {
			panic(err)
		}
	}
	debug.SetGCPercent(garbage)
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
