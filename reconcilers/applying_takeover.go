package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/write"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply makes actual agree with what is wanted. It returns what the server has then, and whether that is another
// version.
func (a *applyCall[Type]) apply(
	ctx context.Context, w objectWriter[Type], wanted managedfields.Configuration, actual Type,
) (answer *unstructured.Unstructured, changed bool, err error) {
	kind := wanted.Object().GroupVersionKind()
	entries, err := a.entriesOf(ctx, w, kind, actual)
	if err != nil {
		return nil, false, err
	}
	a.takeOver(w.resource, actual, entries)
	writer := write.Writer{
		Client:    w.config.Client,
		Migration: managedfields.Migration{Owner: a.owner, All: true, Kept: a.kept(kind.GroupKind())},
		Force:     a.manager.Conflicts == ForceConflicts,
		Leave:     a.manager.Conflicts == LeaveConflicts,
	}
	log := logr.FromContextOrDiscard(ctx)
	before := write.VersionOf(actual)
	for range 2 {
		answer = wanted.Object()
		var from []string
		if before, from, err = writer.Migrate(ctx, answer, before, entries); len(from) > 0 {
			// What that changes is in the line about the apply.
			log.V(1).Info("taking over the fields of earlier writes",
				"object", describeObject(actual), "managers", from)
		}
		if err != nil {
			return nil, false, err
		}
		// Another resource version is no obstacle, because fields of others stay.
		left, err := writer.Apply(ctx, answer, write.Version{UID: actual.GetUID()})
		if len(left) > 0 {
			log.Info("leaving fields to others", "object", describeObject(actual),
				"reason", newApplyConflicts(describeObject(actual), left, nil).Error())
		}
		if err != nil {
			// The cache will show the object as it was migrated.
			refused := w.writeOf(actual, a.identity)
			refused.Version = before.ResourceVersion
			w.noteRefusal(ctx, refused, err)
			if conflict := newApplyConflictError(describeObject(actual), err); conflict != nil {
				err = conflict
			}
			return nil, false, err
		}
		changed = changed || before.ResourceVersion == "" || answer.GetResourceVersion() != before.ResourceVersion
		before, entries = write.VersionOf(answer), answer.GetManagedFields()
		if len(a.owner.Writers(entries)) == 0 {
			break
		}
		// The cache strips managed fields: only the answer shows that there are fields to migrate.
	}
	return answer, changed, nil
}

// takesOverOnce returns the managers whose fields are taken over once: those of the root, and those of the manager if
// it has TakeOverOnce.
func (m *ApplyingObjectManager[Type]) takesOverOnce(ctx context.Context) []string {
	var once []string
	if m.TakeOverOnce {
		once = m.TakeOverFrom
	}
	if s := contextOf(ctx).state; s != nil && len(s.takeOverFrom) > 0 {
		once = slices.Concat(once, s.takeOverFrom)
	}
	return once
}

// takeOver makes plain writes of the managers of once the owner's, if the object with these managed fields is
// controlled by resource and was not taken over yet: nothing was applied to it, or one of them still owns the owner
// reference, which it loses when it is taken over.
func (a *applyCall[Type]) takeOver(resource, actual client.Object, entries []metav1.ManagedFieldsEntry) {
	if a.takesOver || len(a.once) == 0 || len(entries) == 0 || !metav1.IsControlledBy(actual, resource) {
		return
	}
	earlier := managedfields.Owner{Before: a.once}.Writers(entries)
	isEarlier := func(maker string) bool { return slices.Contains(earlier, maker) }
	if len(earlier) > 0 && !a.owner.HasApplied(entries) ||
		slices.ContainsFunc(managedfields.Makers(entries, resource.GetUID()), isEarlier) {
		a.owner.Before, a.takesOver = slices.Concat(a.owner.Before, a.once), true
	}
}

// entriesOf returns the managed fields of actual. They are read past a cache that strips them if they decide what is
// taken over.
func (a *applyCall[Type]) entriesOf(
	ctx context.Context, w objectWriter[Type], kind schema.GroupVersionKind, actual Type,
) ([]metav1.ManagedFieldsEntry, error) {
	entries := actual.GetManagedFields()
	if len(a.once) == 0 || len(entries) > 0 || w.config.APIReader == nil || !metav1.IsControlledBy(actual, w.resource) {
		return entries, nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	if err := w.config.APIReader.Get(ctx, client.ObjectKeyFromObject(actual), live); err != nil {
		return nil, fmt.Errorf("unable to read who wrote the fields of %s: %w", describeObject(actual), err)
	}
	return live.GetManagedFields(), nil
}

// kept are the fields that stay if their managers are taken over. Once for all, finalizers are among them: the API
// server itself adds some, and one that goes too soon costs data.
func (a *applyCall[Type]) kept(kind schema.GroupKind) [][]string {
	if a.takesOver {
		return write.Kept(kind)
	}
	return write.AssignedOnce(kind)
}

// tellRemnants says in an event which fields stay although they are not desired, since those that made the object for
// the resource wrote them by updates, before the first apply.
func (a *applyCall[Type]) tellRemnants(
	ctx context.Context, w objectWriter[Type], wanted managedfields.Configuration, actual Type,
	answer *unstructured.Unstructured,
) {
	if a.owner.HasApplied(actual.GetManagedFields()) || !metav1.IsControlledBy(actual, w.resource) || IsDryRun(ctx) {
		return
	}
	kind := answer.GroupVersionKind().GroupKind()
	writer := write.Writer{
		Client:    w.config.Client,
		Migration: managedfields.Migration{Owner: a.owner, Kept: write.Kept(kind)},
	}
	remnants := writer.Remnants(ctx, wanted, answer, w.resource.GetUID())
	if len(remnants) > 0 {
		w.original.record(w.regarding, corev1.EventTypeWarning, "FieldsStay", "%s %s",
			describeObject(actual), describeRemnants(remnants))
	}
}

func describeRemnants(remnants []managedfields.Remnant) string {
	var fields, managers []string
	for _, remnant := range remnants {
		fields = append(fields, remnant.String())
		managers = append(managers, strconv.Quote(remnant.Manager))
	}
	names := strings.Join(slices.Compact(managers), ", ")
	return fmt.Sprintf("keeps what %s wrote before and is not desired, until TakeOverFrom(%s) removes it: %s",
		names, names, message.List(slices.Compact(fields), maxLogged))
}
