// Package command has the commands of espalier. Each has a file of its own.
package command

import (
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// library is the module of Espalier.
const library = "github.com/espalier-dev/espalier"

// New returns the command with its subcommands, which write what was asked for to out, and the rest to errOut. An error
// is returned, and not printed.
func New(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "espalier",
		Short:         "Write and run operators made of small reconcilers",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetOut(out)
	root.SetErr(errOut)
	root.AddCommand(newCluster(), newComponent(), newNew(), newPage(), newTree(), newVet())
	return root
}

// version returns the version of the module that the program was made of, or "(devel)" if it has none.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// libraryVersion returns the version of Espalier that the program was made with, or "" if that was a checkout.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == library && module.Replace == nil {
			return module.Version
		}
	}
	return ""
}
