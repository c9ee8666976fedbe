package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/internal/write"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is how often a write is tried that meets a conflict.
const attempts = 5

var errDeleting = errors.New("it is being deleted, and gets no finalizer any more")

// handOver does the writes in the order that the doc of the package says.
func (r *Run) handOver(ctx context.Context, c *component, dryRun bool) (string, error) {
	if c.state == nil {
		if done, err := r.mayBegin(c); done != "" || err != nil {
			return done, err
		}
		c.state = &State{Names: r.Names, Status: sharedStatus(c.status())}
	} else if c.state.hasConverted(c.status()) {
		return "nothing to do, it was taken over before", nil
	}
	state, err := c.state.encode()
	if err != nil {
		return "", err
	}
	inventory, err := newInventory(recordsOf(c.objects), uidsOf(c.objects))
	if err != nil {
		return "", err
	}
	swapped := func(live client.Object) []jsonpatch.Operation {
		m := swap(live, r.Names.From.Finalizer, r.Names.To.Finalizer)
		m.annotations[Annotation] = state
		return m.operations(live)
	}
	if err := change(ctx, r.Client, c.Unstructured, swapped, dryRun); err != nil {
		return "", err
	}
	err = eachObject(ctx, c, dryRun, func(record *record, live client.Object) marks {
		return r.Names.handOver(live, record.key().GroupKind(), record.Digest, c.owner)
	}, func(record *record) fieldsFunc {
		return func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
			return r.Names.handOverFields(entries, record.key().GroupKind())
		}
	})
	if err != nil {
		return "", err
	}
	if len(inventory) > 0 {
		if err := r.writeInventory(ctx, c, inventory, dryRun); err != nil {
			return "", err
		}
	}
	return said(c, dryRun, "taken over", "to take over"), nil
}

// mayBegin returns an error if a takeover cannot begin, or else why there is nothing to do, if there is not.
func (r *Run) mayBegin(c *component) (done string, err error) {
	old := slices.Contains(c.GetFinalizers(), r.Names.From.Finalizer)
	switch {
	case isOurs(c.status()), !old && slices.Contains(c.GetFinalizers(), r.Names.To.Finalizer):
		return "nothing to do, it is that of " + r.Names.To.Prefix, nil
	case !old && len(c.objects) == 0:
		return "nothing to do, the old operator has not deployed it", nil
	case !old:
		return "", fmt.Errorf("it does not have the finalizer %s of the old operator: "+
			"is that what --from-name or --from-finalizer has to say?", r.Names.From.Finalizer)
	case c.GetDeletionTimestamp() != nil:
		return "", fmt.Errorf("%w: let the old operator finish", errDeleting)
	case !slices.ContainsFunc(c.objects, func(o object) bool { return o.ours }) &&
		slices.ContainsFunc(c.objects, func(o object) bool { return o.record.Phase != string(apis.PhaseCompleted) }):
		return "", fmt.Errorf("none of its %d recorded objects is there and has its owner label: is it deployed to "+
			"another cluster, or by another operator?", len(c.objects))
	}
	return "", nil
}

// giveBack does what handOver does, in the opposite order.
func (r *Run) giveBack(ctx context.Context, c *component, dryRun bool) (string, error) {
	switch {
	case c.state == nil:
		return "nothing to do, it is not taken over, or that is finalized", nil
	case c.GetDeletionTimestamp() != nil:
		return "", fmt.Errorf("%w: let the new operator finish", errDeleting)
	case c.status()["inventory"] == nil && c.state.Status["inventory"] != nil:
		return "", errors.New("its status has no inventory any more: if that is not empty, it is kept in objects, " +
			"and what the new operator has made is not known")
	}
	err := eachObject(ctx, c, dryRun, func(record *record, live client.Object) marks {
		return r.Names.giveBack(live, record.key().GroupKind(), record.Digest, c.owner)
	}, func(record *record) fieldsFunc {
		return func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
			return r.Names.giveBackFields(entries, record.isApplied())
		}
	})
	if err != nil {
		return "", err
	}
	if c.state.hasConverted(c.status()) {
		before, _ := c.state.Status["inventory"].([]any)
		back := statusBack(c.state.Status, recordsOf(c.objects)[len(before):])
		restored := func(live client.Object) []jsonpatch.Operation {
			return statusOperations(statusOf(live.(*unstructured.Unstructured)), back)
		}
		if _, err := r.changeStatus(ctx, c.Unstructured, restored, dryRun); err != nil {
			return "", explained(err, "old")
		}
	}
	if err := r.changeBack(ctx, c, dryRun); err != nil {
		return "", err
	}
	return said(c, dryRun, "given back", "to give back"), nil
}

// changeBack gives the metadata of a component back. The state goes last, so that the next run finishes what this one
// does not.
func (r *Run) changeBack(ctx context.Context, c *component, dryRun bool) error {
	swapped := func(live client.Object) []jsonpatch.Operation {
		return swap(live, r.Names.To.Finalizer, r.Names.From.Finalizer).operations(live)
	}
	if err := change(ctx, r.Client, c.Unstructured, swapped, dryRun); err != nil {
		return err
	}
	if !dryRun {
		if err := changeFields(ctx, r.Client, c.Unstructured, r.Names.componentFields); err != nil {
			return err
		}
	}
	forgotten := func(live client.Object) []jsonpatch.Operation { return forget(live).operations(live) }
	return change(ctx, r.Client, c.Unstructured, forgotten, dryRun)
}

// finalize removes the old marks, and at last the state.
func (r *Run) finalize(ctx context.Context, c *component, dryRun bool) (string, error) {
	switch {
	case c.state == nil:
		return "nothing to do, it is not taken over, or that is finalized", nil
	case len(c.objects) > 0 && !c.state.hasConverted(c.status()):
		return "", errors.New("it is not taken over in full: run the same without --finalize first")
	}
	err := eachObject(ctx, c, dryRun, func(_ *record, live client.Object) marks {
		return r.Names.finalize(live)
	}, func(*record) fieldsFunc { return r.Names.finalizeFields })
	if err != nil {
		return "", err
	}
	forgotten := func(live client.Object) []jsonpatch.Operation { return forget(live).operations(live) }
	if err := change(ctx, r.Client, c.Unstructured, forgotten, dryRun); err != nil {
		return "", err
	}
	return said(c, dryRun, "finalized", "to finalize"), nil
}

// said says how many objects there are.
func said(c *component, dryRun bool, done, planned string) string {
	there := 0
	for i := range c.objects {
		if c.objects[i].ours {
			there++
		}
	}
	if dryRun {
		done = planned
	}
	return fmt.Sprintf("%s, with %d of %d recorded objects", done, there, len(c.objects))
}

// eachObject changes the marks of each object of the component, and then its managed fields: those of marks that are
// written go to whom the request says, and the next request corrects that. The latter is not tried without effect,
// since it needs no other right.
func eachObject(
	ctx context.Context, c *component, dryRun bool,
	wanted func(record *record, live client.Object) marks, fields func(*record) fieldsFunc,
) error {
	for i := range c.objects {
		o := &c.objects[i]
		if !o.ours {
			continue
		}
		marked := func(live client.Object) []jsonpatch.Operation { return wanted(&o.record, live).operations(live) }
		err := change(ctx, c.client, o.live, marked, dryRun)
		if err == nil && !dryRun {
			err = changeFields(ctx, c.client, o.live, fields(&o.record))
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s cannot be changed: %w", o.record.key(), err)
		}
	}
	return nil
}

// changeFields writes the managed fields of an object.
func changeFields(ctx context.Context, in client.Client, live client.Object, wanted fieldsFunc) error {
	var failed error
	err := change(ctx, in, live, func(client.Object) []jsonpatch.Operation {
		entries, changed, err := wanted(live.GetManagedFields())
		if failed = err; err != nil || !changed {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("replace", "/metadata/managedFields", entries)}
	}, false)
	return errors.Join(failed, err)
}

// fieldsFunc returns managed fields as they have to be, and whether they differ from what they are.
type fieldsFunc func([]metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error)

// change patches an object so that it is as wanted, and makes live be what the API server answers unless it is a dry
// run. After a conflict it reads the object and tries again.
func change(
	ctx context.Context, in client.Client, live client.Object, wanted func(client.Object) []jsonpatch.Operation,
	dryRun bool,
) error {
	options := []client.PatchOption{client.FieldOwner(Manager)}
	if dryRun {
		options = append(options, client.DryRunAll)
		live = live.DeepCopyObject().(client.Object)
	}
	return patch(ctx, in, live, wanted, func(patch client.Patch) error {
		return in.Patch(ctx, live, patch, options...)
	})
}

// changeStatus does the same for the status, and returns the component as the API server answers.
func (r *Run) changeStatus(
	ctx context.Context, live *unstructured.Unstructured, wanted func(client.Object) []jsonpatch.Operation,
	dryRun bool,
) (*unstructured.Unstructured, error) {
	options := []client.SubResourcePatchOption{client.FieldOwner(Manager)}
	if dryRun {
		options = append(options, client.DryRunAll)
		live = live.DeepCopy()
	}
	err := patch(ctx, r.Client, live, wanted, func(patch client.Patch) error {
		return r.Client.Status().Patch(ctx, live, patch, options...)
	})
	if err != nil {
		return nil, fmt.Errorf("the status cannot be written: %w", err)
	}
	return live, nil
}

var errReplaced = errors.New("it was deleted and created again meanwhile")

// patch sends patches until one meets no conflict. It changes no other object of the same name.
func patch(
	ctx context.Context, in client.Client, live client.Object, wanted func(client.Object) []jsonpatch.Operation,
	send func(client.Patch) error,
) error {
	for n := 1; ; n++ {
		operations := wanted(live)
		if len(operations) == 0 {
			return nil
		}
		patch, err := write.JSONPatch(live.GetResourceVersion(), operations...)
		if err == nil {
			err = send(patch)
		}
		if !apierrors.IsConflict(err) || n == attempts {
			return err
		}
		uid := live.GetUID()
		if err := in.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}
		if live.GetUID() != uid {
			return errReplaced
		}
	}
}

// readObject reads the metadata of an object, in the version of its record or in another one that is served. It returns
// nil if the object does not exist.
func readObject(ctx context.Context, from client.Client, record *record) (*metav1.PartialObjectMetadata, error) {
	kind := record.key().GroupKind()
	mapping, err := from.RESTMapper().RESTMapping(kind, record.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = from.RESTMapper().RESTMapping(kind)
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(mapping.GroupVersionKind)
	err = from.Get(ctx, types.NamespacedName{Namespace: record.Namespace, Name: record.Name}, live)
	if served.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// writeInventory writes our inventory into the status of a component. The API server must keep what it has and that of
// the old engine has not.
func (r *Run) writeInventory(ctx context.Context, c *component, all []apis.InventoryRecord, dryRun bool) error {
	answer, err := r.changeStatus(ctx, c.Unstructured, func(live client.Object) []jsonpatch.Operation {
		if isOurs(statusOf(live.(*unstructured.Unstructured))) {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status/inventory", all)}
	}, dryRun)
	if err != nil {
		return explained(err, "new")
	}
	named := slices.ContainsFunc(all, func(r apis.InventoryRecord) bool { return r.UID != "" })
	if named && !isOurs(statusOf(answer)) {
		return errors.New("the API server drops the UIDs of an inventory: " +
			"apply the CustomResourceDefinition of the new operator first")
	}
	return nil
}

// explained says what to do if a status is not one that the definition allows: each operator has words of its own.
func explained(err error, operator string) error {
	if !apierrors.IsInvalid(err) {
		return err
	}
	return fmt.Errorf("%w: apply the CustomResourceDefinition of the %s operator first", err, operator)
}

func recordsOf(objects []object) []record {
	all := make([]record, len(objects))
	for i := range objects {
		all[i] = objects[i].record
	}
	return all
}

// uidsOf returns the UIDs of the objects that belong to the component.
func uidsOf(objects []object) map[plan.Key]types.UID {
	uids := map[plan.Key]types.UID{}
	for i := range objects {
		if o := &objects[i]; o.ours {
			uids[o.record.key()] = o.live.UID
		}
	}
	return uids
}
