package takeover

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/component/clusters"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Run changes the hands of components. All fields but Lease, DryRun and Now are required.
type Run struct {
	Client client.Client
	Names  Names
	// Kind is that of the components. Namespace is where they are, empty for all namespaces, and Only their names,
	// empty for all.
	Kind      schema.GroupVersionKind
	Namespace string
	Only      []string
	// Lease is that of the operator that must not run. Without a namespace, it is looked for in all. Default: the name
	// is the prefix of the operator.
	Lease types.NamespacedName
	// ClusterID is that of the ComponentReconciler. Default: the UID of the namespace kube-system.
	ClusterID string
	// DryRun has the API server check all writes, and make none.
	DryRun bool
	// Out gets a line for each component, and for each object that is left alone.
	Out io.Writer
	// Now returns the time by the clock of the cluster. Default: time.Now.
	Now func() time.Time

	// cluster is the UID of the namespace kube-system.
	cluster types.UID
	// clusters are the other clusters of components, and reached has what closes the connections to them.
	clusters clusters.Pool
	reached  map[string]func()
}

// direction is one of the three things that a run does.
type direction struct {
	// idle is the operator that must not run.
	idle Operator
	// do does it for a component. It returns what was done, in words that follow the name of the component, and with
	// dryRun what would be done.
	do func(ctx context.Context, c *component, dryRun bool) (string, error)
}

// HandOver makes components those of our operator.
func (r *Run) HandOver(ctx context.Context) error {
	return r.run(ctx, direction{r.Names.From, r.handOver})
}

// Rollback makes components those of the old operator again.
func (r *Run) Rollback(ctx context.Context) error {
	return r.run(ctx, direction{r.Names.To, r.giveBack})
}

// Finalize removes what a rollback needs.
func (r *Run) Finalize(ctx context.Context) error {
	return r.run(ctx, direction{r.Names.From, r.finalize})
}

// run first has the API server check all writes to all components, so that nothing is written if a right is missing or
// an object is refused. It stops at the first error: what is wrong with one component is mostly wrong with all.
func (r *Run) run(ctx context.Context, d direction) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	if err := r.checkLease(ctx, cmp.Or(r.Lease.Name, d.idle.Prefix)); err != nil {
		return err
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := r.Client.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("the UID of the namespace %s is part of the old marks: %w", metav1.NamespaceSystem, err)
	}
	r.cluster, r.reached = system.UID, map[string]func(){}
	defer func() {
		for _, closed := range r.reached {
			closed()
		}
	}()
	names, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, dryRun := range []bool{true, false} {
		for _, name := range names {
			if !dryRun && r.DryRun {
				continue
			}
			said, err := r.component(ctx, name, d, dryRun)
			switch {
			case err != nil && dryRun:
				return fmt.Errorf("%s %s: %w; nothing was written", r.Kind.Kind, name, err)
			case err != nil:
				return fmt.Errorf("%s %s: %w; run the same again to finish", r.Kind.Kind, name, err)
			case dryRun == r.DryRun:
				fmt.Fprintf(r.Out, "%s %s: %s\n", r.Kind.Kind, name, said)
			}
		}
	}
	return nil
}

func (r *Run) component(
	ctx context.Context, name types.NamespacedName, d direction, dryRun bool,
) (string, error) {
	c, err := r.read(ctx, name, d.idle)
	if err != nil {
		return "", err
	}
	if dryRun == r.DryRun {
		for i := range c.objects {
			if o := &c.objects[i]; o.live != nil && !o.ours {
				fmt.Fprintf(r.Out, "%s %s: %s does not have its owner label, and is left alone\n",
					r.Kind.Kind, name, o.record.key())
			}
		}
	}
	return d.do(ctx, c, dryRun)
}

// checkLease returns an error if an operator with a Lease of that name is running.
func (r *Run) checkLease(ctx context.Context, name string) error {
	if r.Lease.Namespace != "" {
		lease := &coordinationv1.Lease{}
		key := types.NamespacedName{Namespace: r.Lease.Namespace, Name: name}
		if err := r.Client.Get(ctx, key, lease); err != nil {
			return fmt.Errorf("the Lease tells whether the operator is running: %w", err)
		}
		return atWork(lease, r.Now())
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.Client.List(ctx, leases, client.MatchingFields{"metadata.name": name}); err != nil {
		return fmt.Errorf("the Lease %s tells whether the operator is running, --lease says where it is: %w", name, err)
	}
	for i := range leases.Items {
		if err := atWork(&leases.Items[i], r.Now()); err != nil {
			return err
		}
	}
	if len(leases.Items) == 0 {
		const note = "There is no Lease %s, so only the managed fields tell whether the operator is running.\n"
		fmt.Fprintf(r.Out, note, name)
	}
	return nil
}

// list returns the names of the components.
func (r *Run) list(ctx context.Context) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for _, name := range r.Only {
		names = append(names, types.NamespacedName{Namespace: r.Namespace, Name: name})
	}
	if len(names) > 0 {
		return names, nil
	}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(r.Kind.GroupVersion().WithKind(r.Kind.Kind + "List"))
	if err := r.Client.List(ctx, found, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("unable to list the components: %w", err)
	}
	for i := range found.Items {
		names = append(names, client.ObjectKeyFromObject(&found.Items[i]))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no %s in %s", r.Kind.Kind, cmp.Or(r.Namespace, "any namespace"))
	}
	return names, nil
}

// component is a component as it was read.
type component struct {
	*unstructured.Unstructured
	// client is for the cluster of its objects, and owner says whose they are there.
	client client.Client
	owner  owner
	// state is nil if the component has not been taken over.
	state *State
	// objects are those in its inventory, and in the one before the takeover.
	objects []object
}

// object is an object of a component. live is nil if it does not exist. ours says whether it belongs to the component.
type object struct {
	record record
	live   *metav1.PartialObjectMetadata
	ours   bool
}

func (c *component) status() map[string]any { return statusOf(c.Unstructured) }

func statusOf(component *unstructured.Unstructured) map[string]any {
	status, _ := component.Object["status"].(map[string]any)
	return status
}

// read reads a component and its objects. The operator idle must not have written them within the last minute.
func (r *Run) read(ctx context.Context, name types.NamespacedName, idle Operator) (*component, error) {
	c := &component{Unstructured: &unstructured.Unstructured{}}
	c.SetGroupVersionKind(r.Kind)
	if err := r.Client.Get(ctx, name, c.Unstructured); err != nil {
		return nil, err
	}
	if err := wroteLately(c, idle.FieldManager, r.Now()); err != nil {
		return nil, err
	}
	if err := r.findTarget(ctx, c); err != nil {
		return nil, err
	}
	all, err := r.readState(c)
	if err != nil {
		return nil, err
	}
	c.objects = make([]object, len(all))
	for i := range all {
		o := &c.objects[i]
		o.record = all[i]
		if o.live, err = readObject(ctx, c.client, &all[i]); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", all[i].key(), err)
		}
		if o.live == nil {
			continue
		}
		o.ours = r.Names.belongs(o.live, c.owner)
		if err := wroteLately(o.live, idle.FieldManager, r.Now()); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].key(), err)
		}
	}
	return c, nil
}

// readState reads the state of a component, and returns the records of its objects as the old engine has them.
func (r *Run) readState(c *component) ([]record, error) {
	value, taken := c.GetAnnotations()[Annotation]
	if !taken {
		if isOurs(c.status()) {
			return nil, nil
		}
		return records(c.status())
	}
	var err error
	if c.state, err = decode(value); err != nil {
		return nil, err
	}
	if c.state.Names != r.Names {
		return nil, fmt.Errorf("it was taken over with other names, which have to be given: "+
			"--from-name %s --from-finalizer %s --from-field-manager %s --prefix %s --finalizer %s --field-manager %s",
			c.state.From.Prefix, c.state.From.Finalizer, c.state.From.FieldManager,
			c.state.To.Prefix, c.state.To.Finalizer, c.state.To.FieldManager)
	}
	all, err := records(c.state.Status)
	if err != nil || !c.state.hasConverted(c.status()) {
		return all, err
	}
	ours, err := ourRecords(c.status())
	return slices.Concat(all, added(all, ours)), err
}
