package controllers_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// TestMain keeps what the libraries say at each start out of the output of the tests. It also takes away the handler of
// errors that waits for a millisecond after the last error of the process: if that was in another bubble, it waits for
// as long as the clocks are apart.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
