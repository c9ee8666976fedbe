// Package demo runs the demos of the examples. A demo plays a scenario on a real cluster: in each step it does
// something, and then checks facts about the cluster.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Demo plays a scenario on a control plane that it starts itself or, with USE_EXISTING_CLUSTER=true, on the cluster of
// the current kubeconfig, which it leaves as it was. The control plane is in the process, unless REAL is true.
type Demo struct {
	// Title says what the demo shows.
	Title string
	// Users are the names of the users as whom the operator connects.
	Users []string
	// Second asks for a second control plane, which has no controllers. There is none next to an existing cluster.
	Second bool
	// Open makes a cluster ready for the scenario. If it returns an error, nothing is left behind.
	Open func(ctx context.Context, options Options) (*Scenario, error)
	// OpenWithPage is Open, and serves a live page of the operator, whose address it returns. Nil if there is none.
	OpenWithPage func(ctx context.Context, options Options) (*Scenario, string, error)
	// Repeat plays the steps again and again, with the page open, until the context ends. It needs OpenWithPage.
	Repeat bool
	// Trials are printed if the operator is kept.
	Trials []Trial
	// Keep leaves the operator running after the steps, until the context ends, and prints where the kubeconfig is.
	Keep bool
}

// Main runs demos as a program, one after the other, and exits with 1 if one fails. With the flag -keep, the first demo
// is the only one, and its operator is kept. With -page, the first that has a page is the only one, and is repeated.
func Main(demos ...Demo) {
	verbose := flag.Bool("v", false, "print what the operator logs, on standard error")
	keep := flag.Bool("keep", false, "play the first demo alone, and leave its operator running until an interrupt")
	page := flag.Bool("page", false, "serve a page of an operator, and play its demo again and again until interrupted")
	flag.Parse()
	switch {
	case *page:
		demos = slices.DeleteFunc(demos, func(d Demo) bool { return d.OpenWithPage == nil })
		if len(demos) == 0 {
			fmt.Fprintln(os.Stderr, "no demo of this program serves a page: leave -page out, or run another program")
			os.Exit(2)
		}
		demos = demos[:1]
	case *keep:
		demos = demos[:1]
	}
	logger, ofClients := logr.Discard(), logr.Discard()
	if *verbose {
		logger = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
		// An API server in this process logs to klog, too. Clients warn only.
		ofClients = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(ofClients)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the program without cleaning up.
	context.AfterFunc(ctx, stop)
	for _, d := range demos {
		d.Keep, d.Repeat = *keep, *page
		if err := d.Run(ctx, logger, os.Stdout); err != nil {
			outcome := "failed"
			if ctx.Err() != nil {
				outcome = "was interrupted"
			}
			fmt.Fprintf(os.Stderr, "\nThe demo %s: %v\n", outcome, err)
			os.Exit(1)
		}
	}
	stop()
}

// Run starts the control plane, plays the scenario, and cleans up.
func (d Demo) Run(ctx context.Context, logger logr.Logger, out io.Writer) (err error) {
	start := time.Now()
	planeOptions := controlplane.Options{
		GarbageCollection:    true,
		NamespaceDeletion:    true,
		AllowExistingCluster: true,
	}
	if (d.Keep || d.Repeat) && planeOptions.UsesExistingCluster() {
		return errors.New("no operator is kept on an existing cluster, as what you make there would stay when it " +
			"ends: leave -keep and -page out, or unset USE_EXISTING_CLUSTER")
	}
	plane, err := controlplane.Start(ctx, planeOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := d.introduce(out, plane, time.Since(start)); err != nil {
		return err
	}
	options, err := NewOptions(plane, d.Users...)
	if err != nil {
		return err
	}
	options.Logger, options.Out = logger, out
	if d.Second && !plane.Existing() {
		options.Second, err = controlplane.Start(ctx, controlplane.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.Second.Stop()) }()
	}
	if d.Repeat {
		return d.repeat(ctx, out, options)
	}
	scenario, err := d.Open(ctx, options)
	if err != nil {
		return err
	}
	if !plane.Existing() {
		// The cluster is removed with all of its objects.
		defer func() { err = errors.Join(err, scenario.Operator.Stop()) }()
		if err := scenario.Play(ctx); err != nil || !d.Keep {
			return err
		}
		return d.keep(ctx, out, plane.Config(), &scenario.Operator)
	}
	// The objects have to be deleted even after an interrupt.
	defer func() { err = errors.Join(err, scenario.Close(context.WithoutCancel(ctx))) }()
	return scenario.Play(ctx)
}

func (d Demo) introduce(out io.Writer, plane *controlplane.Environment, took time.Duration) error {
	client, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	where := fmt.Sprintf("on Kubernetes %s in this process, which started in %.1f s", version, took.Seconds())
	switch {
	case plane.Existing():
		where = fmt.Sprintf("on the cluster of the current kubeconfig, Kubernetes %s", version)
	case controlplane.Real():
		where = fmt.Sprintf("on Kubernetes %s, which started in %.1f s", version, took.Seconds())
	}
	_, err = fmt.Fprintf(out, "%s, %s.\n", d.Title, where)
	return err
}
