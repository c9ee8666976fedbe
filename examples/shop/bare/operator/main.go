// Command operator is the operator for shops without Espalier. "make size" compares its size with that of
// examples/shop.
package main

import (
	"errors"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/bare"
	"github.com/espalier-dev/espalier/examples/shop/registry"
)

func main() {
	if err := run(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	shops := &bare.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("shop"),
		Registry: &registry.Memory{}, RetryInterval: time.Minute,
	}
	ctx := ctrl.SetupSignalHandler()
	if err := shops.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
