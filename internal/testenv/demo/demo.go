package storytelling

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

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Story is a story in its world.
type Story interface {
	// Tell tells it.
	Tell(ctx context.Context) error
	// Close takes away all that the story has brought into the cluster.
	Close(ctx context.Context) error
	// Abandon leaves the cluster as it is, for somebody else to throw away.
	Abandon() error
}

// Demo tells a story on a control plane that it starts itself or, with USE_EXISTING_CLUSTER=true, on the cluster of the
// current kubeconfig, which it leaves as it was.
type Demo struct {
	// Title says what is shown.
	Title string
	// Open makes a cluster ready for the story.
	Open func(ctx context.Context, plane *controlplane.Environment, logger logr.Logger, out io.Writer) (Story, error)
}

// Main runs the demo as a program, and exits with 1 if it fails.
func (d Demo) Main() {
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
	if err := d.Run(ctx, logger, os.Stdout); err != nil {
		outcome := "failed"
		if ctx.Err() != nil {
			outcome = "was interrupted"
		}
		fmt.Fprintf(os.Stderr, "\nThe demo %s: %v\n", outcome, err)
		os.Exit(1)
	}
	stop()
}

// Run starts the control plane, tells the story, and cleans up.
func (d Demo) Run(ctx context.Context, logger logr.Logger, out io.Writer) (err error) {
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
	if err := d.introduce(out, plane, time.Since(start)); err != nil {
		return err
	}
	story, err := d.Open(ctx, plane, logger, out)
	if err != nil {
		return err
	}
	// After an interrupt there is still to clean up.
	defer func() { err = errors.Join(err, leave(context.WithoutCancel(ctx), story, plane.Existing())) }()
	return story.Tell(ctx)
}

// leave cleans up in a cluster that is not thrown away afterwards.
func leave(ctx context.Context, story Story, existing bool) error {
	if existing {
		return story.Close(ctx)
	}
	return story.Abandon()
}

func (d Demo) introduce(out io.Writer, plane *controlplane.Environment, took time.Duration) error {
	version, err := serverVersion(plane.Config())
	if err != nil {
		return err
	}
	if plane.Existing() {
		_, err = fmt.Fprintf(out, "%s, on the cluster of the current kubeconfig, Kubernetes %s.\n", d.Title, version)
	} else {
		_, err = fmt.Fprintf(out, "%s, on Kubernetes %s, which started in %.1f s.\n", d.Title, version, took.Seconds())
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
