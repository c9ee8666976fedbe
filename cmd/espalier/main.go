// Command espalier helps those who write and run operators: it runs a cluster on one's desk, opens the live page of an
// operator in a cluster, looks after components, and finds mistakes in code. It is also a -vettool of go vet.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func main() {
	vet.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.New(os.Stdout, os.Stderr).ExecuteContext(ctx)
	stop()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "espalier:", err)
	}
	os.Exit(command.ExitCode(err))
}
