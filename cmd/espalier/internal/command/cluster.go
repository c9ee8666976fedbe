//go:build !windows

package command

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

func newCluster() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Run a cluster in this process, for development",
	}
	c.AddCommand(newClusterStart())
	return c
}

func newClusterStart() *cobra.Command {
	env := &cluster.Environment{ErrorIfCRDPathMissing: true}
	port, noWorkloads := 0, false
	c := &cobra.Command{
		Use:   "start",
		Short: "Start a cluster, and run it until interrupted",
		Long: `Start a cluster in this process, and run it until interrupted.

It has a Kubernetes API server over a storage in memory, and stands in for the
controllers that matter: workloads become ready, jobs complete, garbage is
collected, namespaces end. There are no containers and no nodes. It starts in
about a second and needs nothing installed.

The command prints the line by which a shell, and so kubectl, takes its
kubeconfig. The kubeconfig is not merged into others, and only you can read it.`,
		Example: `  # a cluster with the definitions of a folder
  espalier cluster start --crds config/crd/bases

  # one that keeps its objects, at the same port each time
  espalier cluster start --data cluster.wal --port 6443`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port is %d, and must be between 0 and 65535", port)
			}
			env.Workloads = !noWorkloads
			env.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			log.SetLogger(logr.Discard())
			return cluster.Run(c.Context(), env, func(ctx context.Context, _ *rest.Config) error {
				<-ctx.Done()
				return nil
			})
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&env.CRDDirectoryPaths, "crds", nil,
		"a file, or a folder with files, of CustomResourceDefinitions to install; may be repeated")
	flags.StringVar(&env.DataFile, "data", "",
		"a file that keeps the objects, and that a later cluster begins with; by default nothing is kept")
	flags.BoolVar(&env.Sync, "sync", false,
		"with --data, write to the disk before an answer, so that a loss of power loses nothing")
	flags.IntVar(&port, "port", 0, "the port of 127.0.0.1 where the API server listens; 0 takes a free one")
	flags.StringVar(&env.KubeConfigPath, "kubeconfig", "",
		"where to write the kubeconfig; by default a file that is removed in the end")
	flags.BoolVar(&noWorkloads, "no-workloads", false, "make no Pods, and run none")
	flags.StringArrayVar(&env.Without, "without", nil,
		"a component that does not run, such as kubelet, or a kind whose controller does not run; may be repeated")
	return c
}
