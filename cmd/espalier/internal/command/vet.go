package command

import (
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"
)

func newVet() *cobra.Command {
	return &cobra.Command{
		Use:   "vet [FLAGS] [PACKAGES]",
		Short: "Find what compiles and goes wrong in a cluster",
		Long: `Find what compiles and goes wrong in a cluster, in packages that use Espalier.

It runs go vet with this program as its -vettool, so flags are those of go vet and
of the analyzers: -json prints findings as JSON, -desired=false leaves an analyzer
out, -desired runs that one alone, and -tags and others say how to build. Without
packages it looks at that of the current folder. The exit code is 1 if something
was found, and 0 with -json.`,
		Example:            "  espalier vet ./...",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
				return c.Help()
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			vet := exec.CommandContext(c.Context(), "go", append([]string{"vet", "-vettool=" + self}, args...)...)
			vet.Stdout, vet.Stderr = c.OutOrStdout(), c.ErrOrStderr()
			if err := vet.Run(); err != nil {
				return fmt.Errorf("go vet: %w", err)
			}
			return nil
		},
	}
}
