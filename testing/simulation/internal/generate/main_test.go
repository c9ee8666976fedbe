package generate_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain keeps what the libraries say at each start out of the output of the tests.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
