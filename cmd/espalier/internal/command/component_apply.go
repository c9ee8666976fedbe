package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/source"
	"github.com/espalier-dev/espalier/internal/message"
)

// runOptions are the flags of commands that run the engine.
type runOptions struct {
	*componentOptions
	wait    bool
	timeout time.Duration
	output  output
}

func (o *runOptions) addFlags(c *cobra.Command, what string) {
	flags := c.Flags()
	flags.BoolVar(&o.wait, "wait", true, "wait until the component is "+what)
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to work and to wait; 0 is without end")
	flags.DurationVar(&o.lease, "lease-duration", 15*time.Second,
		"after which time without a sign of life another command may take over")
	o.output.addFlag(c)
}

type applyOptions struct {
	runOptions
	sourceOptions
	dryRun dryRun
}

// sourceOptions say what a component is to be.
type sourceOptions struct {
	values                 []string
	fieldManager, selector string
	prune                  bool
}

func (o *sourceOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVarP(&o.values, "values", "f", nil,
		"a file with values for charts and kustomizations; of several the later ones win")
	flags.StringVar(&o.fieldManager, "field-manager", "",
		"the name that objects are written under, from the first apply on (default \""+release.FieldManager+"\")")
	flags.StringVarP(&o.selector, "selector", "l", "",
		"write and remove only objects that have these labels; others stay as they are")
	flags.BoolVar(&o.prune, "prune", true, "remove what was applied before and is in no source any more")
}

// prepared is what a component is to be.
type prepared struct {
	run     *release.Run
	stored  *release.Release
	objects []*unstructured.Unstructured
}

// prepare reads the sources, and renders the objects.
func (o *sourceOptions) prepare(c *cobra.Command, shared *componentOptions, args []string) (*prepared, error) {
	set, err := source.Load(args[1:], o.values, interruptible{c.Context(), c.InOrStdin()})
	if err != nil {
		return nil, err
	}
	cluster, namespace, err := shared.connect(c.Context())
	if err != nil {
		return nil, err
	}
	if err := refuseOperated(c.Context(), cluster, namespace, args[0], "change"); err != nil {
		return nil, err
	}
	return o.render(c.Context(), cluster, namespace, args[0], set)
}

// render renders the objects of sources, and finds those that are to stay as they are.
func (o *sourceOptions) render(
	ctx context.Context, cluster *release.Cluster, namespace, name string, set *source.Set,
) (*prepared, error) {
	matches, err := matcherOf(o.selector)
	if err != nil {
		return nil, err
	}
	spec := release.Spec{Digest: set.Digest, Sources: set.Names, FieldManager: o.fieldManager}
	stored, objects, err := cluster.Prepare(ctx,
		release.Desired{Namespace: namespace, Name: name, Spec: spec, Objects: set.Objects})
	if err != nil {
		return nil, err
	}
	selected := release.Selected(objects, matches)
	switch {
	case len(objects) == 0:
		const why = "the sources have no objects: \"espalier component delete %s\" deletes those of the component"
		return nil, fmt.Errorf(why, name)
	case len(selected) == 0:
		return nil, fmt.Errorf("none of %s in the sources has the labels %s", message.Objects(len(objects)), o.selector)
	}
	var kept release.Kept
	switch {
	case !o.prune:
		kept = stored.Others(selected)
	case o.selector != "":
		kept, err = cluster.Unselected(ctx, stored, selected, objects, matches)
	}
	if err != nil {
		return nil, err
	}
	run := &release.Run{Cluster: cluster, Generate: release.Fixed(selected), Kept: kept}
	return &prepared{run: run, stored: stored, objects: selected}, nil
}

func newComponentApply(shared *componentOptions) *cobra.Command {
	o := &applyOptions{runOptions: runOptions{componentOptions: shared}}
	c := &cobra.Command{
		Use:   "apply NAME SOURCE...",
		Short: "Deploy a component from manifests, charts and kustomizations",
		Long: `Deploy a component from manifests, charts and kustomizations, and wait for it.

A SOURCE is a folder with a Chart.yaml or a packed chart, a folder with a
kustomization, another folder with manifests, a file with manifests, or - for the
standard input.

Objects are recorded in an inventory, then written in waves. What was applied
before and is not there any more is removed. Objects of somebody else are left
alone. The inventory is in the Secret espalier-release-NAME.`,
		Example: `  espalier component apply shop ./manifests -n shops

  # a chart and one more object
  espalier component apply shop ./chart extra.yaml -f values.yaml`,
		Args: atLeast(2, "NAME and SOURCE are"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.limited(c, func() error { return o.run(c, args) })
		},
	}
	o.sourceOptions.addFlags(c)
	o.dryRun.addFlag(c)
	o.runOptions.addFlags(c, "ready")
	return c
}

func (o *applyOptions) run(c *cobra.Command, args []string) error {
	if err := errors.Join(o.output.check(), o.dryRun.check()); err != nil {
		return err
	}
	if o.dryRun != dryRunNone {
		ready, err := o.prepare(c, o.componentOptions, args)
		if err != nil {
			return err
		}
		return o.dryRun.print(c.Context(), c, o.output, ready.run, ready.stored, ready.objects)
	}
	set, err := source.Load(args[1:], o.values, interruptible{c.Context(), c.InOrStdin()})
	if err != nil {
		return err
	}
	return o.locked(c, args[0], "change", func(ctx context.Context, cluster *release.Cluster, namespace string) error {
		ready, err := o.render(ctx, cluster, namespace, args[0], set)
		if err != nil {
			return err
		}
		// What is wrong with the objects is found before anything is stored.
		if _, _, err := ready.run.Plan(ctx, ready.stored, false); err != nil {
			return err
		}
		if err := cluster.Store(ctx, ready.stored); err != nil {
			return fmt.Errorf("unable to store the component %q: %w", args[0], err)
		}
		return o.until(ctx, c, ready.run, ready.stored, "ready")
	})
}

// limited calls a function, and ends the context of the command when the time is over.
func (o *runOptions) limited(c *cobra.Command, do func() error) error {
	ctx, cancel := withTimeout(c.Context(), o.timeout)
	defer cancel()
	c.SetContext(ctx)
	return ended(ctx, do())
}

// locked calls a function while it holds the Lease of a component. The context ends when the Lease is lost.
func (o *runOptions) locked(
	c *cobra.Command, name, verb string, do func(ctx context.Context, cluster *release.Cluster, namespace string) error,
) error {
	ctx := c.Context()
	cluster, namespace, err := o.connect(ctx)
	if err != nil {
		return err
	}
	if err := refuseOperated(ctx, cluster, namespace, name, verb); err != nil {
		return err
	}
	lock, err := o.hold(ctx, cluster, namespace, name, c.ErrOrStderr())
	if err != nil {
		return err
	}
	defer lock.Release()
	err = do(lock.Context, cluster, namespace)
	if lost := context.Cause(lock.Context); err != nil && lost != nil && ctx.Err() == nil && !errors.Is(err, lost) {
		return fmt.Errorf("%w: %w", lost, err)
	}
	return err
}

// until runs the engine, shows how far it is, and prints what became of it.
func (o *runOptions) until(
	ctx context.Context, c *cobra.Command, run *release.Run, stored *release.Release, reached string,
) error {
	display := newDisplay(c.ErrOrStderr(), os.Getenv)
	run.Show, run.Wait = display.show, o.wait
	outcome, err := run.Until(ctx, stored)
	display.end()
	if outcome == release.NotReady && !o.wait && ctx.Err() == nil {
		fmt.Fprintf(c.ErrOrStderr(), "not waiting: %v\n", err)
		outcome, err, reached = release.Reached, nil, "under way"
	}
	if err != nil {
		code := map[release.Outcome]int{
			release.Failed: exitFailed, release.NotReady: exitNotReady, release.Blocked: exitBlocked,
			release.Interrupted: exitInterrupted,
		}[outcome]
		return &exitError{code, fmt.Errorf("component %q: %w", stored.Name, err)}
	}
	return o.print(ctx, c.OutOrStdout(), run.Cluster, stored, reached)
}

// print prints a component that a command has changed.
func (o *runOptions) print(
	ctx context.Context, out io.Writer, cluster *release.Cluster, stored *release.Release, done string,
) error {
	if o.output == "" || o.output == outputTable || o.output == outputWide {
		_, err := fmt.Fprintf(out, "component %s/%s %s\n", stored.Namespace, stored.Name, done)
		return err
	}
	if done != "deleted" {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
	}
	return o.output.print(out, stored)
}

func newComponentDelete(shared *componentOptions) *cobra.Command {
	o, dry := &runOptions{componentOptions: shared}, dryRun("")
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a component that apply has deployed",
		Long: `Delete the objects of a component in the order of their delete waves, and wait until
they are gone.

While others use a type or a namespace that would go, nothing is deleted, and the
exit code is 3.`,
		Example: "  espalier component delete shop -n shops",
		Args:    exactly(1, "one NAME is"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.limited(c, func() error { return o.delete(c, args[0], dry) })
		},
	}
	o.addFlags(c, "gone")
	dry.addFlag(c)
	return c
}

func (o *runOptions) delete(c *cobra.Command, name string, dry dryRun) error {
	if err := errors.Join(o.output.check(), dry.check()); err != nil {
		return err
	}
	// Who deletes what is not there need not wait for a Lease, nor leave one.
	cluster, namespace, err := o.connect(c.Context())
	if err != nil {
		return err
	}
	stored := &release.Release{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := refuseOperated(c.Context(), cluster, namespace, name, "delete"); err != nil {
		return err
	}
	if err := cluster.Get(c.Context(), key, stored); err != nil {
		return err
	}
	if dry != dryRunNone {
		run := &release.Run{Cluster: cluster, Generate: release.NoObjects}
		return dry.print(c.Context(), c, o.output, run, stored.Deleted(), nil)
	}
	return o.locked(c, name, "delete", func(ctx context.Context, cluster *release.Cluster, _ string) error {
		if err := cluster.Get(ctx, key, stored); err != nil {
			return err
		}
		if err := cluster.BeginDeletion(ctx, stored); err != nil {
			return fmt.Errorf("unable to delete the component %q: %w", name, err)
		}
		run := &release.Run{Cluster: cluster, Generate: release.NoObjects, Deletes: true}
		return o.until(ctx, c, run, stored, "deleted")
	})
}
