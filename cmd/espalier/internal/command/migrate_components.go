package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/takeover"
)

// migrateComponentsOptions are the flags of the command migrate components.
type migrateComponentsOptions struct {
	cluster *genericclioptions.ConfigFlags
	names   takeover.Names
	// lease and clusterID are those of takeover.Run.
	lease, clusterID string

	allNamespaces, dryRun, finalize, rollback bool
}

func newMigrateComponents() *cobra.Command {
	o := &migrateComponentsOptions{cluster: genericclioptions.NewConfigFlags(true)}
	c := &cobra.Command{
		Use:   "components KIND.GROUP [NAME...] --from-name NAME --prefix PREFIX",
		Short: "Hand live components over from an operator of component-operator-runtime",
		Long: `Hand live components over from an operator that is built with
github.com/sap/component-operator-runtime to one with a ComponentReconciler. No
object is deleted or created.

Stop the old operator, apply the CustomResourceDefinition of the new one, run this
command, and start the new operator. The components get our finalizer in place of
the old one, their objects our marks beside the old ones, and the status our
inventory. What the field manager of the old operator has written counts as applied
by ours from then on.

--rollback gives everything back to the old operator, also after the new one has
run; apply the CustomResourceDefinition of the old one before. --finalize removes
the old marks and what a rollback needs. Run the command again if it was
interrupted: it does what is left.

Nothing is written if a Lease of the operator that has to be stopped is fresh, or if
its field manager has written a component or an object within the last minute. Nor
is it if the API server refuses a write: each is tried without effect first.

You need the rights to get and patch the components, their status (components/status)
and the objects, to get the namespace kube-system, and to list Leases; without names
of components, also to list these.`,
		Example: `  # what would be done
  espalier migrate components Shop.example.com -A --dry-run \
    --from-name shop-operator.example.com --prefix shop.example.com

  # later, when the new operator has been at work
  espalier migrate components Shop.example.com -A --finalize \
    --from-name shop-operator.example.com --prefix shop.example.com`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("the kind of the components is needed, such as Shop.example.com")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0], args[1:]) },
	}
	o.addFlags(c)
	return c
}

func (o *migrateComponentsOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.cluster.AddFlags(flags)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "take the components of all namespaces")
	flags.BoolVar(&o.dryRun, "dry-run", false, "have the API server check all writes, and make none")
	flags.BoolVar(&o.finalize, "finalize", false, "remove the marks of the old operator, and what a rollback needs")
	flags.BoolVar(&o.rollback, "rollback", false, "give the components back to the old operator")
	flags.StringVar(&o.lease, "lease", "", "the Lease of the operator that must not run, as NAMESPACE/NAME or NAME; "+
		"by default that with its name or prefix, in any namespace")
	from, to := &o.names.From, &o.names.To
	flags.StringVar(&from.Prefix, "from-name", "", "the name of the reconciler in the old operator; required")
	flags.StringVar(&from.Finalizer, "from-finalizer", "", "the finalizer of the old operator; by default its name")
	flags.StringVar(&from.FieldManager, "from-field-manager", "",
		"the field owner of the old operator; by default its name")
	flags.StringVar(&to.Prefix, "prefix", "",
		"the Prefix of the ComponentReconciler; required, and not the old name")
	flags.StringVar(&to.Finalizer, "finalizer", "",
		"the Finalizer of the ComponentReconciler; by default its prefix, followed by /component")
	flags.StringVar(&to.FieldManager, "field-manager", "",
		"the FieldManager of the ComponentReconciler; by default its prefix")
	flags.StringVar(&o.clusterID, "cluster-id", "",
		"the ClusterID of the ComponentReconciler; by default the UID of the namespace kube-system")
}

func (o *migrateComponentsOptions) run(c *cobra.Command, kind string, names []string) error {
	run, err := o.newRun(c.Context(), kind, names, c.OutOrStdout())
	switch {
	case err != nil:
		return err
	case o.finalize:
		return run.Finalize(c.Context())
	case o.rollback:
		return run.Rollback(c.Context())
	}
	return run.HandOver(c.Context())
}

func (o *migrateComponentsOptions) newRun(
	ctx context.Context, kind string, only []string, out io.Writer,
) (*takeover.Run, error) {
	names := o.names.WithDefaults()
	if err := names.Validate(); err != nil {
		return nil, err
	}
	switch {
	case o.finalize && o.rollback:
		return nil, errors.New("--finalize and --rollback exclude each other")
	case o.allNamespaces && len(only) > 0:
		return nil, errors.New("names of components are those in one namespace: leave out --all-namespaces")
	}
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // one request at a time is made, and the API server has a limit of its own
	run := &takeover.Run{Names: names, Only: only, ClusterID: o.clusterID, DryRun: o.dryRun, Out: out}
	cluster, err := release.NewCluster(config)
	if err != nil {
		return nil, err
	}
	run.Client = cluster
	if run.Now, err = clockOf(ctx, config); err != nil {
		return nil, err
	}
	if run.Kind, err = kindOf(cluster, kind); err != nil {
		return nil, err
	}
	if !o.allNamespaces {
		if run.Namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, err
		}
	}
	if o.lease != "" {
		namespace, name, found := strings.Cut(o.lease, "/")
		if !found {
			namespace, name = "", namespace
		}
		run.Lease = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return run, nil
}

// clockOf returns the clock of an API server. That of this machine may be wrong, and then what was written a moment ago
// would look old.
func clockOf(ctx context.Context, config *rest.Config) (func() time.Time, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer c.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	there, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return nil, fmt.Errorf("the API server does not say what time it is: %w", err)
	}
	ahead := time.Until(there)
	return func() time.Time { return time.Now().Add(ahead) }, nil
}
