package command

import (
	"errors"

	"github.com/spf13/cobra"
)

// newCluster returns a command that says why it does nothing.
func newCluster() *cobra.Command {
	return &cobra.Command{
		Use:   "cluster",
		Short: "Run a cluster in this process, for development (not on Windows)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("there is no cluster in the process on Windows: package envtest of controller-runtime, " +
				"which it is built on, does not compile there up to v0.25.2; use WSL")
		},
	}
}
