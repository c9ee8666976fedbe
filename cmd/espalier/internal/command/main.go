package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command with the arguments of the process, and exits. Called as kubectl-espalier it says in what it
// prints that it is called "kubectl espalier".
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := New(os.Stdout, os.Stderr)
	if name := filepath.Base(os.Args[0]); strings.HasPrefix(name, "kubectl-espalier") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl espalier"}
	}
	// A second signal ends the process, whatever it waits for.
	context.AfterFunc(ctx, stop)
	err := ended(ctx, root.ExecuteContext(ctx))
	stop()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(root.ErrOrStderr(), "espalier:", err)
	}
	os.Exit(ExitCode(err))
}
