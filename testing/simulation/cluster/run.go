package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Run starts env, prints where the kubeconfig is and the line by which a shell takes it, calls operator, and stops the
// cluster when operator returns. The error is that of operator, or of the start or the stop. It is for the main of a
// program for development, so that the binary of the operator itself does not contain an API server:
//
//	// Command dev runs the operator on a cluster in the process.
//	func main() {
//		env := &cluster.Environment{CRDDirectoryPaths: []string{"config/crd"}, Workloads: true}
//		if err := cluster.Run(ctrl.SetupSignalHandler(), env, controller.Run); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The operator returns when ctx ends, as a manager does. Its config is that of an administrator: [Environment.AddUser]
// returns one that may do what roles allow. If it serves webhooks, their manifests are in WebhookInstallOptions, and
// the operator serves them at the address and with the certificate that are there when it is called.
//
// Of what the libraries report by klog, errors are printed, and warnings while operator runs. A logger that the program
// has given to klog gets all, as always.
func Run(
	ctx context.Context, env *Environment, operator func(ctx context.Context, config *rest.Config) error,
) (err error) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// There are warnings at each start.
	err = errors.Join(flags.Set("legacy_stderr_threshold_behavior", "false"), flags.Set("stderrthreshold", "ERROR"))
	if err != nil {
		return err
	}
	config, err := env.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	if err := flags.Set("stderrthreshold", "WARNING"); err != nil {
		return err
	}
	path, err := filepath.Abs(env.KubeConfigPath)
	if err != nil {
		return err
	}
	fmt.Println("A cluster runs until this program ends. For kubectl in another terminal:")
	fmt.Printf("\n    export KUBECONFIG='%s'\n\n", strings.ReplaceAll(path, "'", `'\''`))
	return operator(ctx, config)
}
