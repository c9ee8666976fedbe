package stories

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// garbage is how much garbage may be there before it is collected, in percent of what is in use. A world is small, and
// most of what it makes lives for a request: to collect that less often takes a third less time.
const garbage = 400

// Main runs the tests of a package of stories. It keeps what the libraries say out of their output.
func Main(m *testing.M) {
	debug.SetGCPercent(garbage)
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
