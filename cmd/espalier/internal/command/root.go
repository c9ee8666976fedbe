// Package command has the commands of espalier. Each has a file of its own.
package command

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// library is the module of Espalier.
const library = "github.com/espalier-dev/espalier"

// New returns the command with its subcommands, which write what was asked for to out, and the rest to errOut. Texts of
// others cannot act on a terminal there. An error is returned, and not printed.
func New(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "espalier",
		Short:         "Write and run operators made of small reconcilers",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetOut(&printable{Writer: out})
	root.SetErr(&printable{Writer: errOut})
	root.AddCommand(newCluster(), newComponent(), newNew(), newPage(), newTree(), newVet())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	refuseUnknown(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return unknown(c, args)
		}
		return err
	})
	return root
}

// refuseUnknown makes an unknown subcommand an error, also as an argument of help. Cobra prints the help of the command
// above it instead, and succeeds.
func refuseUnknown(c *cobra.Command) {
	if c.Name() == "help" {
		c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err == nil && about.HasSubCommands() {
				err = unknown(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		}
	}
	if !c.HasSubCommands() {
		return
	}
	c.Args, c.DisableFlagsInUseLine = unknown, true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SuggestionsMinimumDistance = 2
	for _, below := range c.Commands() {
		refuseUnknown(below)
	}
}

// unknown returns an error for the arguments that are left for a command that takes none but subcommands.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%q has no command %q", c.CommandPath(), args[0])
	if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("%s: did you mean %s?", text, strings.Join(similar, " or "))
	}
	return fmt.Errorf("%s: --help lists those that it has", text)
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
