package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
)

// componentOptions are the flags that the commands about components share.
type componentOptions struct {
	cluster *genericclioptions.ConfigFlags
	// lease is how long the Lease of a component lasts without being renewed.
	lease time.Duration
}

func newComponent() *cobra.Command {
	o := &componentOptions{cluster: genericclioptions.NewConfigFlags(true)}
	c := &cobra.Command{
		Use:   "component",
		Short: "Look after components: deploy, show, delete and mend them",
		Long: `Look after components: sets of objects that belong together.

A component that an operator keeps is named KIND/NAME, as for kubectl, and can be
looked at. A component without an operator is named NAME: apply deploys it from
manifests, charts and kustomizations in the way that an operator would, in waves,
with an inventory. A command that was ended at any time goes on when it runs again.

Exit codes are 0 for ready, 1 for failed, 2 for not ready, 3 for blocked, when
somebody else has to act, and 130 for interrupted. Those of diff are 0 and 1
without and with differences, and 2 after an error.`,
	}
	o.cluster.AddFlags(c.PersistentFlags())
	_ = c.RegisterFlagCompletionFunc("namespace", o.completeNamespaces)
	c.AddCommand(newComponentApply(o), newComponentDelete(o), newComponentList(o), newComponentStatus(o),
		newComponentPlan(o), newComponentDiff(o), newComponentExplain(o), newComponentAdopt(o), newComponentOrphan(o),
		newComponentRecover(o))
	for _, below := range c.Commands() {
		switch below.Name() {
		case "apply", "plan", "diff":
			below.ValidArgsFunction = o.completeNames(false, true)
		case "status":
			below.ValidArgsFunction = o.completeNames(true, false)
		case "delete", "adopt", "orphan", "recover":
			below.ValidArgsFunction = o.completeNames(false, false)
		default:
			below.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	return c
}

// connect returns a client of the cluster, whose requests end with ctx, and the namespace.
func (o *componentOptions) connect(ctx context.Context) (*release.Cluster, string, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	// As kubectl.
	config.QPS, config.Burst = 50, 300
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	c, err := release.NewCluster(ctx, config)
	return c, namespace, err
}

// refuseOperated returns an error for a component of an operator. It names the operator.
func refuseOperated(ctx context.Context, c *release.Cluster, namespace, target, verb string) error {
	kind, name, found := strings.Cut(target, "/")
	if !found {
		return release.CheckName(target)
	}
	gvk, err := kindOf(c, kind)
	if err != nil {
		return err
	}
	component, err := c.Resource(ctx, gvk, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	const why = "%s is kept by the operator %q: %s the resource with kubectl, and the operator does the rest"
	return &exitError{exitBlocked, fmt.Errorf(why, target, component.Operator, verb)}
}

// kindOf finds a kind by a name that kubectl would take, such as deploy, deployments.apps or Deployment.
func kindOf(c *release.Cluster, name string) (schema.GroupVersionKind, error) {
	gvk, err := c.KindFor(name)
	if err != nil {
		return gvk, fmt.Errorf("the cluster has no kind %q: %w", name, err)
	}
	return gvk, nil
}

// exactly returns what checks that a command has so many arguments. The names are those of the arguments.
func exactly(count int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > count {
			return fmt.Errorf("%s needed, and there are %d arguments", names, len(args))
		}
		return atLeast(count, names)(c, args)
	}
}

// atLeast returns what checks that a command has so many arguments or more.
func atLeast(count int, names string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < count {
			return fmt.Errorf("%s needed, and there are %d arguments", names, len(args))
		}
		return nil
	}
}

// withTimeout returns a context that ends after a time, with an error that says so; 0 is never.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, release.ErrTimeout)
}

// hold takes the Lease of a component.
func (o *componentOptions) hold(
	ctx context.Context, c *release.Cluster, namespace, name string, errOut io.Writer,
) (*release.Lock, error) {
	if o.lease < time.Second {
		return nil, fmt.Errorf("--lease-duration is %s, and must be a second at least", o.lease)
	}
	lock, err := c.Acquire(ctx, namespace, name, o.lease, func(holder string) {
		fmt.Fprintf(errOut, "waiting to see whether the command of %s still runs\n", holder)
	})
	if held := (*release.HeldError)(nil); errors.As(err, &held) {
		return nil, &exitError{exitBlocked, err}
	}
	return lock, err
}
