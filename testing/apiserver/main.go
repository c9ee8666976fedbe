// Package apiserver runs the rows of NodeTests and RootTests on a real API server, so that a table tells whether the
// API server in memory is right about it.
//
//	func TestMain(m *testing.M) {
//		os.Exit(apiserver.Main(m, apiserver.Options{CRDPaths: []string{"../config/crd"}}))
//	}
//
// By default the rows run in memory. The flag -rtesting.real=envtest runs them on a control plane that is started for
// them; the environment variable KUBEBUILDER_ASSETS says where its programs are. Any other value of the flag is the
// path of a kubeconfig, whose current context must be of a cluster for tests. With -rtesting.differential, rows run in
// memory, each call is made on the API server too, and what is answered in another way is logged and listed at the end:
//
//	go test ./controller -v -rtesting.differential
//
// A row does not notice where it runs: its namespaces, UIDs and resource versions are mapped to those of the API
// server, so that tests with t.Parallel share one. What the API server completes in the given objects of a row is not
// shown. Between the requests of a row garbage is collected as in memory. These rows run in memory alone: those in
// VirtualTime, since a server answers in real time; those with reactors, a WithClientBuilder, GivenAPIResources or
// GivenIndexes; and those that pin a Fault. Replays run in memory. A row says in the log of its test where it runs, and
// the last lines of the output count the rows. A row with a Server of its own runs there, whatever the flags say.
package apiserver

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/testing/internal/realserver"
)

// Options say what the API server must have.
type Options struct {
	// CRDPaths are the paths of files, or of folders with files, of CustomResourceDefinitions. The path of a file that
	// does not exist is an error.
	CRDPaths []string
	// CRDs are further CustomResourceDefinitions.
	CRDs []*apiextensionsv1.CustomResourceDefinition
}

// Main runs the tests of a package, and returns the exit code for os.Exit; m is a *testing.M. It parses the flags. The
// code is 1 if there is no API server and the flags ask for one.
func Main(m interface{ Run() int }, options Options) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	where := realserver.Where()
	if where == "" {
		return m.Run()
	}
	stop, err := options.start(where)
	if err != nil {
		fmt.Fprintf(os.Stderr, "-rtesting.real=%s: %s\n", where, err)
		return 1
	}
	code := m.Run()
	realserver.Summary(os.Stdout)
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// start makes the API server ready for rows, and returns how to stop it.
func (o Options) start(where string) (stop func() error, err error) {
	install := envtest.CRDInstallOptions{Paths: o.CRDPaths, CRDs: o.CRDs, ErrorIfPathMissing: true}
	if where != realserver.Envtest {
		config, err := clientcmd.BuildConfigFromFlags("", where)
		if err != nil {
			return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
		}
		if _, err := envtest.InstallCRDs(config, install); err != nil {
			return nil, fmt.Errorf("cannot install the CRDs: %w", err)
		}
		realserver.Use(unlimited(config), false)
		return func() error { return nil }, nil
	}
	env := &envtest.Environment{CRDInstallOptions: install, UseExistingCluster: new(bool)}
	config, err := env.Start()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%w: set KUBEBUILDER_ASSETS to a folder with the programs etcd and kube-apiserver, "+
				"such as setup-envtest makes", err)
		}
		return nil, errors.Join(fmt.Errorf("cannot start a control plane: %w", err), env.Stop())
	}
	realserver.Use(unlimited(config), true)
	return env.Stop, nil
}

// unlimited returns a copy of a config whose clients do not wait before they call.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	return config
}
