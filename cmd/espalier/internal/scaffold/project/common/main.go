// Command placeholder-operator is an operator for Placeholders; see README.md.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/common/operator"
)

func main() {
	options := operator.Options{}
	options.AddFlags(flag.CommandLine)
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = operator.Run(ctrl.SetupSignalHandler(), config, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
