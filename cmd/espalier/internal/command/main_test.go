package command_test

import (
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func TestMain(m *testing.M) {
	vet.Main()
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}
