package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
)

// completionTime is how long a shell waits for names.
var completionTime = 3 * time.Second

// completeNames completes the first argument with the names of components. With others, as KIND/NAME, it has those of
// operators too. Files follow if the command has more arguments.
func (o *componentOptions) completeNames(others, files bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && files {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.complete(c, typed, func(ctx context.Context, cluster *release.Cluster, namespace string) []string {
			found, _, _ := cluster.Find(ctx, namespace)
			var names []string
			for i := range found {
				switch {
				case found[i].Kind == release.Kind:
					names = append(names, found[i].Object.GetName())
				case others:
					kind := strings.ToLower(found[i].Kind.Kind + "." + found[i].Kind.Group)
					names = append(names, kind+"/"+found[i].Object.GetName())
				}
			}
			return names
		})
	}
}

// completeNamespaces completes the flag --namespace.
func (o *componentOptions) completeNamespaces(
	c *cobra.Command, _ []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(ctx context.Context, cluster *release.Cluster, _ string) (names []string) {
		list := &corev1.NamespaceList{}
		_ = cluster.List(ctx, list, client.Limit(1000)) // without an answer there are no names
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	})
}

// complete returns the names that begin with what was typed.
func (o *componentOptions) complete(
	c *cobra.Command, typed string, names func(context.Context, *release.Cluster, string) []string,
) (found []cobra.Completion, directive cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	cluster, namespace, err := o.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, name := range names(ctx, cluster, namespace) {
		if strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
