// Package command has the commands of espalier. Each has a file of its own.
package command

import (
	"io"

	"github.com/spf13/cobra"
)

// New returns the command with its subcommands, which write what was asked for to out, and the rest to errOut. An error
// is returned, and not printed.
func New(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "espalier",
		Short:         "Write and run operators made of small reconcilers",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(out)
	root.SetErr(errOut)
	root.AddCommand(newCluster(), newNew(), newPage(), newVet())
	return root
}
