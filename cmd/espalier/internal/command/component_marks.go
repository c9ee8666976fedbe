package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
)

func newComponentExplain(o *componentOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say whose an object is, and what its deletion waits for",
		Long: `Say whose an object is and by which marks, whether the inventory of the owner has it,
who has written it, and what its deletion waits for.`,
		Example: "  espalier component explain deployment/web -n shops",
		Args:    exactly(1, "one KIND/NAME is"),
		RunE: func(c *cobra.Command, args []string) error {
			cluster, namespace, err := o.connect(c.Context())
			if err != nil {
				return err
			}
			refs, err := refsOf(cluster, namespace, args)
			if err != nil {
				return err
			}
			if err := cluster.Get(c.Context(), client.ObjectKeyFromObject(refs[0]), refs[0]); err != nil {
				return err
			}
			lines, err := cluster.Explain(c.Context(), refs[0], time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(lines, "\n"))
			return err
		},
	}
}

// refsOf returns objects without content, of names as KIND/NAME.
func refsOf(cluster *release.Cluster, namespace string, names []string) ([]*unstructured.Unstructured, error) {
	var refs []*unstructured.Unstructured
	for _, of := range names {
		kind, name, found := strings.Cut(of, "/")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is no object: it is as KIND/NAME", of)
		}
		gvk, err := kindOf(cluster, kind)
		if err != nil {
			return nil, err
		}
		ref := &unstructured.Unstructured{}
		ref.SetGroupVersionKind(gvk)
		ref.SetName(name)
		namespaced, err := cluster.IsObjectNamespaced(ref)
		if err != nil {
			return nil, err
		}
		if namespaced {
			ref.SetNamespace(namespace)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// change runs the engine for some objects of a component. All others stay as they are.
func (o *runOptions) change(
	c *cobra.Command, name, reached string, mayBeNew bool,
	objects func(context.Context, *release.Cluster, *release.Release) ([]*unstructured.Unstructured, error),
) error {
	if err := o.output.check(); err != nil {
		return err
	}
	locked := func(ctx context.Context, cluster *release.Cluster, namespace string) error {
		stored, err := cluster.Open(ctx, namespace, name, mayBeNew)
		if err != nil {
			return err
		}
		desired, err := objects(ctx, cluster, stored)
		if owned := (*release.OwnedError)(nil); errors.As(err, &owned) {
			return &exitError{exitBlocked, err}
		}
		if err != nil || len(desired) == 0 {
			return err
		}
		if err := cluster.Store(ctx, stored); err != nil {
			return fmt.Errorf("unable to store the component %q: %w", name, err)
		}
		run := &release.Run{Cluster: cluster, Generate: release.Fixed(desired), Kept: stored.Others(desired)}
		return o.until(ctx, c, run, stored, reached)
	}
	return o.limited(c, func() error { return o.locked(c, name, "change", locked) })
}

func newComponentAdopt(shared *componentOptions) *cobra.Command {
	o, force := &runOptions{componentOptions: shared}, false
	c := &cobra.Command{
		Use:   "adopt NAME KIND/NAME...",
		Short: "Make objects that exist part of a component",
		Long: `Make objects that exist part of a component, which is made if there is none. Their
content stays, until apply has manifests for them: so adopt first, then apply.

An object of somebody else is refused, unless --force takes it over. One that belongs
to the component already is skipped. All others stay as they are. When the
component is deleted, an object that it has adopted stays, unless it has a delete
policy.`,
		Example: "  espalier component adopt shop deployment/web service/web -n shops",
		Args:    atLeast(2, "NAME and KIND/NAME are"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(c, args[0], "ready", true, func(
				ctx context.Context, cluster *release.Cluster, stored *release.Release,
			) ([]*unstructured.Unstructured, error) {
				refs, err := refsOf(cluster, stored.Namespace, args[1:])
				if err != nil {
					return nil, err
				}
				desired, done, err := cluster.Adopting(ctx, stored, refs, force)
				for _, ref := range done {
					const message = "the %s %s belongs to the component %q already\n"
					fmt.Fprintf(c.ErrOrStderr(), message, ref.GetKind(), ref.GetName(), stored.Name)
				}
				return desired, err
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "take objects over from their owners")
	o.addFlags(c, "ready")
	return c
}

func newComponentOrphan(shared *componentOptions) *cobra.Command {
	o := &runOptions{componentOptions: shared}
	c := &cobra.Command{
		Use:   "orphan NAME KIND/NAME...",
		Short: "Let objects of a component go, and leave them in the cluster",
		Long: `Let objects of a component go: they stay in the cluster, and the marks are removed.
Those that it does not have are skipped. All others stay as they are.
Take them out of the sources too: the next apply would find them not its own.`,
		Example: "  espalier component orphan shop configmap/settings -n shops",
		Args:    atLeast(2, "NAME and KIND/NAME are"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(c, args[0], "ready", false, func(
				ctx context.Context, cluster *release.Cluster, stored *release.Release,
			) ([]*unstructured.Unstructured, error) {
				refs, err := refsOf(cluster, stored.Namespace, args[1:])
				if err != nil {
					return nil, err
				}
				desired, done, err := cluster.Orphaning(ctx, stored, refs)
				for _, ref := range done {
					const message = "the %s %s is not in the inventory of the component %q\n"
					fmt.Fprintf(c.ErrOrStderr(), message, ref.GetKind(), ref.GetName(), stored.Name)
				}
				return desired, err
			})
		},
	}
	o.addFlags(c, "ready")
	return c
}

func newComponentRecover(shared *componentOptions) *cobra.Command {
	o := &runOptions{componentOptions: shared}
	c := &cobra.Command{
		Use:   "recover NAME",
		Short: "Make a lost inventory again from the marks on objects",
		Long: `Make the inventory of a component again from the marks on objects, after its Secret was
lost. It looks at all kinds that the cluster serves. It creates no object anew.

Which objects the component had adopted is not known any more: all count as created
by it, and are deleted with it. The next apply deletes and creates objects whose
update policy is recreate, and creates those that were purged: such Jobs and hooks
run again. plan names them.`,
		Example: "  espalier component recover shop -n shops",
		Args:    exactly(1, "one NAME is"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(c, args[0], "ready", true, func(
				ctx context.Context, cluster *release.Cluster, stored *release.Release,
			) ([]*unstructured.Unstructured, error) {
				lost, unseen, err := cluster.Recovering(ctx, stored)
				if err != nil {
					return nil, err
				}
				if len(unseen) > 0 {
					return nil, fmt.Errorf("not all can be looked at, so nothing is done: %w", errors.Join(unseen...))
				}
				for _, object := range lost {
					name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
					fmt.Fprintf(c.ErrOrStderr(), "found %s %s\n", object.GetKind(), name)
				}
				if len(lost) == 0 {
					fmt.Fprintln(c.ErrOrStderr(), "nothing was lost")
				}
				return lost, nil
			})
		},
	}
	o.addFlags(c, "ready")
	return c
}
