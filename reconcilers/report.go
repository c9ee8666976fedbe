package reconcilers

import (
	"cmp"
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/internal/steadytext"
	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReportCondition is [SetCondition] for a condition whose text may differ in each request. Each write of the status
// brings the resource back, so such a text would wake the controller for ever.
//
// Of a text that alone differs from the one in the status, the first three changes are shown at once, and the others at
// most once in a minute. Until then the status keeps the text it has, and the resource is reconciled again when the
// newest text may be shown. That delay doubles, up to ten minutes, each time that the text differs again. A text is
// shown at once if the status or the reason of the condition changes, or the generation of the resource; three further
// changes are then shown at once, too.
func ReportCondition(ctx context.Context, resource client.Object, condition metav1.Condition) {
	if itemOf(ctx) != nil {
		// The condition that stands for all items is reported later.
		SetCondition(ctx, resource, condition)
		return
	}
	shown := shownCondition(ctx, resource, condition.Type)
	generation := cmp.Or(condition.ObservedGeneration, apis.RetrieveGeneration(ctx))
	var text *string
	if shown != nil && shown.Status == condition.Status && shown.Reason == condition.Reason &&
		shown.ObservedGeneration == generation {
		text = &shown.Message
	}
	condition.Message = ReportText(ctx, resource, conditionText(condition.Type), text, condition.Message)
	SetCondition(ctx, resource, condition)
}

// ReportText decides which text the status of resource shows: shown, which it has, or text, which is the newest, as
// [ReportCondition] does. Shown is nil if more than the text changes, so that text is shown at once. The key says which
// text of the resource it is. It must be comparable. Use a type of your own, so that keys of other packages are not
// equal.
func ReportText(ctx context.Context, resource client.Object, key any, shown *string, text string) string {
	kept := stateOf(ctx)
	known, ok := resourcestate.Load[*steadytext.Text](kept, key)
	if !ok {
		if shown != nil && *shown == text {
			return text
		}
		known = resourcestate.LoadOrNew[steadytext.Text](kept, key)
	}
	next, again := known.Next(shown, text, rtime.RetrieveNow(ctx))
	contextOf(ctx).state.wakeAfter(again)
	if next != text && IsObserved(ctx) {
		Note(ctx, Held{Object: refOf(contextOf(ctx).config.Client, resource), Kind: HeldText})
	}
	return next
}

// conditionText is the key of the text of a condition of that type.
type conditionText string

// shownCondition returns the condition that the status of the resource shows. It must not be changed. What the nodes of
// this request did to the condition does not count, below a root.
func shownCondition(ctx context.Context, resource client.Object, conditionType string) *metav1.Condition {
	if s := contextOf(ctx).state; s != nil && s.stored != nil {
		if stored := statusfield.Of(s.stored); stored.HasConditions() {
			return meta.FindStatusCondition(stored.GetConditions(), conditionType)
		}
	}
	return meta.FindStatusCondition(statusfield.Of(resource).GetConditions(), conditionType)
}

// NotNeeded says that there is to be no condition of that type, because its node has nothing to report on: it is
// switched off, say. The condition is removed from the status of resource, in memory, and a summary does without it in
// this request, see the field SummaryCondition of [ResourceReconciler].
func NotNeeded(ctx context.Context, resource client.Object, conditionType string) {
	conditionlog.Of(ctx).NotNeeded(conditionType)
	RemoveCondition(resource, conditionType)
}

// Retire removes conditions that an earlier release of the tree reported, from the status of resource, in memory. A
// condition stays if a node of the tree describes that it sets it (see [Description]), or if one has set it in this
// request. A node calls Retire for types that it has recorded, and removes them from its record.
func Retire(ctx context.Context, resource client.Object, conditionTypes ...string) {
	s := contextOf(ctx).state
	for _, conditionType := range conditionTypes {
		set, _ := conditionlog.Of(ctx).Of(conditionType)
		if !set && (s == nil || !slices.Contains(s.described, conditionType)) {
			RemoveCondition(resource, conditionType)
		}
	}
}
