package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"
)

// The reasons of the condition of a release that was ready, and is not.
const (
	reasonChanged  = "Changed"
	reasonNotReady = "NotReady"
)

// Look reads the objects of a release, as a plan does, and corrects what is stored of it, in memory: nobody else does,
// between two commands. It leaves a release that is being deleted as it is, and a component of an operator, which says
// itself how it is. The error says what could not be looked at: then that is as it was stored.
func (c *Cluster) Look(ctx context.Context, of *Component, now time.Time) error {
	r, ok := of.Object.(*Release)
	if !ok || of.Err != nil || r.DeletionTimestamp != nil {
		return nil
	}
	text, id := r.Owner()
	l := &look{settings: map[objectKey]generator.Settings{}}
	observer := observe.NewDirect(c.Client, Prefix, r.Spec.FieldManager, l.evaluate)
	seen, err := observer.Observe(ctx, observe.Component{
		Watcher: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, UID: r.UID,
		OwnerID: id, Owner: text, Now: now,
	}, interestsIn(of.Status.Inventory))
	if err != nil {
		return err
	}
	of.Status.Inventory = slices.Clone(of.Status.Inventory)
	for i := range of.Status.Inventory {
		record := &of.Status.Inventory[i]
		if o, ok := seen.Objects[planKey(record)]; ok {
			l.assess(record, &o)
		}
	}
	l.conclude(&of.Status, r.Spec.Revision, now)
	r.Status = of.Status
	if len(l.unread) > 0 {
		return fmt.Errorf("unable to read %s: forbidden", message.List(l.unread, maxNamed))
	}
	return nil
}

// interestsIn returns what is to be looked at: objects that were there.
func interestsIn(records []apis.InventoryRecord) (interests []observe.Interest) {
	for i := range records {
		r := &records[i]
		if r.UID != "" && r.Phase != apis.PhaseCompleted {
			interests = append(interests, observe.Interest{
				Key: planKey(r), Version: r.Version, UID: r.UID, Readiness: true,
			})
		}
	}
	return interests
}

func planKey(r *apis.InventoryRecord) plan.Key {
	return plan.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// look is what a look at the objects of a release has shown.
type look struct {
	// settings are those that the objects have.
	settings map[objectKey]generator.Settings
	// changed, unready, failed and unread name objects and say what is wrong with them. An object that is auxiliary is
	// in none.
	changed, unready, failed, unread []string
}

// evaluate says how ready an object is, by its own annotations.
func (l *look) evaluate(object *unstructured.Unstructured, _ generator.Settings) readiness.Result {
	settings, err := generator.ReadSettings(Prefix, object.GetAnnotations())
	if err != nil {
		return readiness.Result{Status: apis.ObjectUnknown, Message: message.Stable(err.Error())}
	}
	l.settings[keyOf(object)] = settings
	if settings.Participation == generator.ParticipationUnchecked {
		return readiness.Result{Status: apis.ObjectCurrent}
	}
	return readiness.Of(object, settings)
}

// assess corrects the record of an object that was there. The first line that applies counts:
//
//	the object         the record says             it is
//	cannot be read     anything                    as stored
//	is gone            not desired, or purging     gone
//	is gone            written once, or a Job      completed, if it was ready
//	is gone            anything else               changed
//	is being deleted   anything                    changed
//	is not ours        anything                    changed
//	has other fields   anything                    changed
//	is ready           not written as desired yet  as stored
//	is ready           anything else               ready
//	is not ready       anything                    not ready, or failed
func (l *look) assess(r *apis.InventoryRecord, o *plan.Observed) {
	leaves := r.Digest == "" || r.Phase == apis.PhaseScheduledForCompletion || r.Phase == apis.PhaseCompleting
	once := r.ReconcilePolicy == apis.ReconcileOnce || r.Group == kinds.Job.Group && r.Kind == kinds.Job.Kind
	settings := l.settings[recordKey(r)]
	edited := o.Fields != "" && r.Fields != "" && o.Fields != r.Fields && r.Fields != plan.FieldsNone
	switch {
	case o.Presence == plan.PresenceUnknown:
		l.unread = append(l.unread, planKey(r).String())
	case o.Presence == plan.Absent && leaves:
		r.Status, r.Message = apis.ObjectNotFound, "it is gone"
	case o.Presence == plan.Absent && once && r.IsDone():
		r.Phase, r.Status, r.Message = apis.PhaseCompleted, "", ""
	case o.Presence == plan.Absent && o.TypeMissing:
		l.finds(&l.changed, r, apis.ObjectNotFound, "the cluster does not serve its type")
	case o.Presence == plan.Absent:
		l.finds(&l.changed, r, apis.ObjectNotFound, "it is gone")
	case leaves:
	case o.Terminating:
		l.finds(&l.changed, r, apis.ObjectTerminating, "it "+o.Deletion)
	case o.Ownership != plan.Ours && o.Claim == "":
		l.finds(&l.changed, r, apis.ObjectUnknown, "it has no marks of the component")
	case o.Ownership != plan.Ours:
		l.finds(&l.changed, r, apis.ObjectUnknown, "it "+o.Claim)
	case edited && len(settings.IgnoreFields) == 0:
		l.finds(&l.changed, r, r.Status, "others have changed it")
	case o.Status == apis.ObjectCurrent && r.Phase == apis.PhaseScheduledForApplication:
	case o.Status == apis.ObjectCurrent:
		r.Phase, r.Status, r.Message = apis.PhaseReady, "", ""
	case settings.Participation == generator.ParticipationAuxiliary:
		r.Status, r.Message = o.Status, o.Message
	case o.Status == apis.ObjectFailed:
		l.finds(&l.failed, r, o.Status, o.Message)
	default:
		l.finds(&l.unready, r, o.Status, o.Message)
	}
}

// finds notes what is wrong with an object.
func (l *look) finds(list *[]string, r *apis.InventoryRecord, status apis.ObjectStatus, text string) {
	r.Status, r.Message = status, text
	*list = append(*list, strings.TrimSuffix(planKey(r).String()+": "+text, ": "))
}

// conclude corrects the state of a release. One that is not ready stays as it was stored, unless its last revision is
// rolled out and all of its objects are ready now.
func (l *look) conclude(status *apis.ComponentStatus, revision int64, now time.Time) {
	for _, named := range [][]string{l.failed, l.changed, l.unready, l.unread} {
		slices.Sort(named)
	}
	wrong := slices.Concat(l.failed, l.changed, l.unready)
	done := len(wrong) == 0 && len(l.unread) == 0 && status.ObservedGeneration == revision &&
		!slices.ContainsFunc(status.Inventory, func(r apis.InventoryRecord) bool { return !r.IsDone() })
	condition := metav1.Condition{
		Type: apis.ConditionReady, Status: metav1.ConditionUnknown, Reason: reasonNotReady,
		ObservedGeneration: revision, LastTransitionTime: metav1.NewTime(now),
		Message: message.List(wrong, maxNamed),
	}
	switch {
	case status.State == apis.ComponentReady && len(wrong) > 0:
		if status.State = apis.ComponentProcessing; len(l.failed) > 0 {
			status.State, condition.Status = apis.ComponentError, metav1.ConditionFalse
		}
		if len(l.changed) > 0 {
			condition.Reason = reasonChanged
			condition.Message = "since the last apply, " + condition.Message
		}
	case status.State != apis.ComponentReady && done:
		status.State, condition.Status = apis.ComponentReady, metav1.ConditionTrue
		condition.Reason, condition.Message = "Ready", "All objects are ready"
	default:
		return
	}
	status.LastObservedAt = nil
	status.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, condition)
}
