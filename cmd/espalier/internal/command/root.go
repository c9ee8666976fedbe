// Package command has the commands of espalier. Each has a file of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command with the arguments of the process, until it is interrupted, and exits.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := New(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if exit := Exit(0); errors.As(err, &exit) {
		os.Exit(int(exit))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "espalier:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Exit is an error with an exit code of its own. It is not printed: what was written before says why.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

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
	root.AddCommand(newCluster(), newMigrate(), newPage(), newVet())
	return root
}
