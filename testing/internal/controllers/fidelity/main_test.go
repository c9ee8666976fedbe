package fidelity_test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

var plane = controlplanetest.Shared{Real: "what kube-controller-manager does is compared", Options: controlplane.Options{
	GarbageCollection: true, NamespaceDeletion: true, Jobs: true, Workloads: true,
}}

// TestMain takes away what the libraries say and the handler of errors that waits, which is not for bubbles.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.SetLogger(logr.Discard())
	// The plays wait most of the time.
	flag.Parse()
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	os.Exit(plane.Main(m))
}
