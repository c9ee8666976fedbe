// Command demo shows the operator for tenants at work: on a control plane that it starts itself, or, with
// USE_EXISTING_CLUSTER=true, on the cluster of the current kubeconfig, which it leaves as it was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/examples/tenant/demo/story"
	"github.com/espalier-dev/espalier/internal/controlplane"
)

func main() {
	verbose := flag.Bool("v", false, "print what the operator logs, on standard error")
	flag.Parse()

	logger := logr.Discard()
	if *verbose {
		logger = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt is for those who do not want to wait for the cleaning up.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, logger, os.Stdout); err != nil {
		outcome := "failed"
		if ctx.Err() != nil {
			outcome = "was interrupted"
		}
		fmt.Fprintf(os.Stderr, "\nThe demo %s: %v\n", outcome, err)
		os.Exit(1)
	}
	stop()
}

// run starts the control plane, tells the story, and cleans up.
func run(ctx context.Context, logger logr.Logger, out io.Writer) (err error) {
	start := time.Now()
	plane, err := controlplane.Start(ctx, controlplane.Options{
		GarbageCollection:    true,
		NamespaceDeletion:    true,
		AllowExistingCluster: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := introduce(out, plane, time.Since(start)); err != nil {
		return err
	}

	operator, err := plane.User(story.OperatorUser)
	if err != nil {
		return err
	}
	hub, err := plane.User(story.HubUser)
	if err != nil {
		return err
	}
	world, err := story.Open(ctx, story.Options{
		Admin: plane.Config(), Operator: operator, Hub: hub, Logger: logger, Out: out,
		// An existing cluster is elsewhere, and does not reach this process.
		Webhooks: !plane.Existing(),
	})
	if err != nil {
		return err
	}
	// After an interrupt there is still to clean up.
	defer func() { err = errors.Join(err, leave(context.WithoutCancel(ctx), world, plane.Existing())) }()
	return world.Tell(ctx, story.Steps())
}

// leave cleans up in a cluster that is not thrown away afterwards.
func leave(ctx context.Context, world *story.World, existing bool) error {
	if existing {
		return world.Close(ctx)
	}
	return world.Abandon()
}

func introduce(out io.Writer, plane *controlplane.Environment, took time.Duration) error {
	version, err := serverVersion(plane.Config())
	if err != nil {
		return err
	}
	if plane.Existing() {
		_, err = fmt.Fprintf(out, "An operator for tenants, on the cluster of the current kubeconfig, Kubernetes %s.\n", version)
	} else {
		_, err = fmt.Fprintf(out, "An operator for tenants, on Kubernetes %s, which started in %.1f s.\n", version, took.Seconds())
	}
	return err
}

func serverVersion(config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("the cluster does not answer: %w", err)
	}
	return version.GitVersion, nil
}
