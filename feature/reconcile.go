package feature

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resourceState is what a node remembers of a feature of one resource from one request to the next.
type resourceState struct {
	// condition is what the last request reported, and lost is how many requests in a row found it without the record.
	condition metav1.Condition
	lost      statusfield.Losses
	// conditions and omitted are fields of the record.
	conditions, omitted recordField
}

// recordField is a field of the record that the definition of the type, if it is that of an earlier release, does not
// have. Each request would write what is not kept.
type recordField struct {
	// recorded is true if the last request recorded something, and lost is how many requests in a row found none of it.
	recorded bool
	lost     statusfield.Losses
}

// isDropped reports whether the field is not kept. There is a record, found, the field of which was set before, and is
// to be set now.
func (f *recordField) isDropped(found, before, now bool) bool {
	lost := f.lost.Note(f.recorded && found && !before)
	f.recorded = now
	return lost >= statusfield.MaxLosses
}

// Reconcile does what the table of transitions says, see [Feature].
func (f *Feature[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if err := f.check(); err != nil {
		return reconcilers.Result{}, err
	}
	ctx = reconcilers.Enter(ctx, f.Name)
	if resource.GetDeletionTimestamp() != nil {
		return reconcilers.ReconcileNested(ctx, f.Reconciler, resource)
	}
	status := statusFor(f.Status, resource)
	if status == nil {
		return reconcilers.Result{}, reconcilers.Failed(ctx, nil, errNoStatus("Feature", f.Name, resource))
	}
	state := f.states.Of(ctx, func() *resourceState { return &resourceState{} })
	record, found := findRecord(status, reconcilers.ItemName(ctx, f.Name))

	kept := found || !state.survives(resource, f.condition())
	request := facts{
		now: rtime.RetrieveNow(ctx), generation: resource.GetGeneration(), grace: f.GracePeriod, records: f.Records,
	}
	result, observed, err := f.run(ctx, resource, record, found, &request)
	if !observed {
		return result, err
	}
	if state.lost.Note(!kept) >= statusfield.MaxLosses {
		lost := reconcilers.Failed(ctx, nil, errNotKept(resource))
		request.summary.fail(lost)
		err = errors.Join(err, lost)
	}
	d := decide(record, request)
	f.report(ctx, resource, status, state, d)
	return reconcilers.AggregateResults(result, reconcilers.Result{RequeueAfter: d.requeueAfter}), err
}

// survives reports whether the condition in the status is the one that the last request reported.
func (s *resourceState) survives(resource client.Object, conditionType string) bool {
	kept := reconcilers.GetCondition(resource, conditionType)
	return kept != nil && s.condition.Type != "" && kept.Status == s.condition.Status &&
		kept.Reason == s.condition.Reason && kept.Message == s.condition.Message
}

func errNotKept(resource client.Object) error {
	return fmt.Errorf("the status of %T does not keep the records of features: "+
		"its CustomResourceDefinition must define status.features", resource)
}

// run asks the gate and the prerequisites, and runs the nested node. observed is false if what happened says nothing
// about the feature.
func (f *Feature[T]) run(
	ctx context.Context, resource T, record apis.FeatureStatus, found bool, request *facts,
) (result reconcilers.Result, observed bool, err error) {
	outer := reconcilers.SupervisionOf(ctx, resource)
	request.supervision = outer
	if outer != reconcilers.Withdraw {
		on, err := f.isOn(ctx, resource)
		if err != nil {
			return result, true, request.failed(ctx, err)
		}
		if !on {
			request.supervision = reconcilers.Withdraw
		}
	}
	var unmet error
	if request.supervision != reconcilers.Withdraw && !record.Passed {
		request.prerequisite, unmet = f.unmet(ctx, resource, found)
		if unmet = reconcilers.Failed(ctx, nil, unmet); request.prerequisite != "" {
			if record.Phase != apis.FeatureDisabled || errors.Is(unmet, reconcilers.ErrQuiet) {
				return result, !errors.Is(unmet, reconcilers.ErrQuiet), unmet
			}
			// What the gate has withdrawn is still withdrawn.
			request.supervision = reconcilers.Withdraw
		}
	}
	if request.supervision != reconcilers.Withdraw {
		if f.Suspended != nil && outer == reconcilers.Maintain {
			suspended, err := f.Suspended(ctx, resource)
			if err != nil {
				return result, true, request.failed(ctx, err)
			}
			if suspended {
				request.supervision = reconcilers.Suspend
			}
		}
	}
	supervisor := &supervisor{supervision: request.supervision, rules: f.Suspension}
	result, err = reconcilers.ReconcileNested(reconcilers.WithSupervisor(ctx, supervisor), f.Reconciler, resource)
	reports := supervisor.collected()
	if saysNothing(err, reports) {
		return result, false, err
	}
	reports, podsErr := f.lookAtPods(ctx, reports, request.supervision)
	request.summary = f.summarize(reports, request.supervision, err)
	for _, other := range []error{podsErr, unmet} {
		if other != nil {
			err = errors.Join(err, other)
		}
	}
	return result, true, err
}

// failed notes that it is not known what the objects are to be told.
func (f *facts) failed(ctx context.Context, err error) error {
	f.gate = errorText(err)
	if errors.Is(err, gate.ErrInvalid) {
		err = errors.Join(err, reconcilers.ErrDurable)
	}
	return reconcilers.Failed(ctx, nil, err)
}

// isOn asks the gate.
func (f *Feature[T]) isOn(ctx context.Context, resource T) (bool, error) {
	if f.Gate == nil {
		return true, nil
	}
	return gate.Enabled(f.Gate(ctx, resource))
}

// unmet returns why the first prerequisite that is not met is not met. An error has a text, too. Nothing is made before
// they are met: if something exists, and no record is found, the record is lost.
func (f *Feature[T]) unmet(ctx context.Context, resource T, found bool) (string, error) {
	var unmet string
	var err error
	for _, prerequisite := range f.Prerequisites {
		if unmet, err = prerequisite.Check(ctx, resource); unmet != "" || err != nil {
			break
		}
	}
	if !found && (unmet != "" || err != nil) {
		exist, listErr := reconcilers.HaveChildren(ctx, reconcilers.Describe(f.Reconciler), resource)
		switch {
		case listErr != nil:
			err = listErr
		case exist:
			return "", nil
		}
	}
	if err != nil {
		return errorText(err), err
	}
	return unmet, nil
}

// saysNothing reports whether an error is no state of the feature: it is quiet, but no halt, or a conflict with another
// writer, and no node reported another error.
func saysNothing(err error, reports []reconcilers.ObservedObject) bool {
	if err == nil || errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
		return false
	}
	if !errors.Is(err, reconcilers.ErrQuiet) && !apierrs.IsConflict(err) {
		return false
	}
	for _, report := range reports {
		if report.Err != nil && !report.Auxiliary && !apierrs.IsConflict(report.Err) {
			return false
		}
	}
	return true
}

// summarize sums up the reports, and the error of the nested node.
func (f *Feature[T]) summarize(
	reports []reconcilers.ObservedObject, supervision reconcilers.Supervision, err error,
) summary {
	rules := rules{health: f.Health, suspension: f.Suspension}
	var objects []dependent
	reported := false
	for _, report := range reports {
		d := rules.assess(report, supervision)
		reported = reported || d.counts && d.State == apis.StateError
		objects = append(objects, d)
	}
	s := summarize(objects, f.Records.lists(supervision))
	s.partial = err != nil
	switch {
	case err == nil:
	case errors.Is(err, reconcilers.ErrHaltSubReconcilers) && !errors.Is(err, reconcilers.ErrDurable):
		s.halt()
	case !reported:
		// A node that reports an error of an object names the object.
		s.fail(err)
	}
	return s
}

// fail notes an error that is none of an object.
func (s *summary) fail(err error) {
	s.state, s.message = apis.StateError, errorText(err)
}

// errorText returns the text of an error for a condition. The errors with a special meaning say nothing to users.
func errorText(err error) string {
	texts := slices.Compact(textsOf(err))
	if len(texts) == 0 {
		return "a node stopped"
	}
	return message.Stable(strings.Join(texts, "; "))
}

func textsOf(err error) []string {
	special := []error{reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers, reconcilers.ErrSkipStatusUpdate}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		for _, sentinel := range special {
			if err == sentinel {
				return nil
			}
		}
		return []string{err.Error()}
	}
	var texts, lines []string
	for _, member := range joined.Unwrap() {
		lines = append(lines, member.Error())
		texts = append(texts, textsOf(member)...)
	}
	if strings.Join(lines, "\n") != err.Error() {
		// It says more than what it wraps.
		return []string{err.Error()}
	}
	return texts
}

// halt notes that a node halted, so that nodes after it did not report.
func (s *summary) halt() {
	if rank(s.state) > rank(apis.StateUnknown) {
		s.state, s.message = apis.StateUnknown, "a node halted, so not all objects are known"
	}
}

// report changes the condition and the record as far as they differ.
func (f *Feature[T]) report(
	ctx context.Context, resource T, status *apis.LifecycleStatus, state *resourceState, d decision,
) {
	condition := metav1.Condition{
		Type: f.condition(), Status: d.status, Reason: string(d.reason), Message: d.message,
	}
	f.reportNested(ctx, resource, d.event)
	f.keep(ctx, resource, status, state, d.record)
	reconcilers.ReportCondition(ctx, resource, condition)
	if shown := reconcilers.GetCondition(resource, condition.Type); shown != nil {
		state.condition = *shown
	}
	if outer := reconcilers.SupervisorOf(ctx); outer != nil {
		f.reportTo(ctx, outer, d)
	}
	removed := reconcilers.HasItem(ctx) && d.reason == apis.StateDisabled &&
		reconcilers.SupervisionOf(ctx, resource) == reconcilers.Withdraw
	if removed {
		// The item is gone, and its key will not be used again for a while.
		status.Features = slices.DeleteFunc(slices.Clone(status.Features), func(r apis.FeatureStatus) bool {
			return r.Name == d.record.Name
		})
		state.condition = metav1.Condition{}
	}
	notePhase(ctx, d, removed)
}

// reportTo has the feature count as one object of the feature around it.
func (f *Feature[T]) reportTo(ctx context.Context, outer reconcilers.Supervisor, d decision) {
	h := apis.Health{State: d.reason, Message: d.message}
	switch {
	case d.event == withdrawn && outer.Supervision() == reconcilers.Withdraw:
		return
	case d.event == prerequisiteMissing && outer.Supervision() == reconcilers.Suspend:
		// Nothing of it exists.
		h = apis.Health{State: apis.StateSuspended}
	case d.event == withdrawn, d.event == suspended && outer.Supervision() == reconcilers.Maintain:
		h = apis.Health{State: apis.StateHealthy}
	case d.reason == apis.StateDown, d.reason == apis.StateDegraded:
		h.Grade = d.reason
	}
	outer.Observe(reconcilers.ObservedObject{Node: reconcilers.RetrievePath(ctx), Health: &h})
}

// reportNested reports the conditions of the nested nodes where these have nothing to report on, because nothing of the
// feature exists, or nothing of it runs.
func (f *Feature[T]) reportNested(ctx context.Context, resource T, e event) {
	for _, conditionType := range f.nestedConditions() {
		switch e {
		case withdrawn, prerequisiteMissing:
			reconcilers.NotNeeded(ctx, resource, conditionType)
		case suspended:
			// What a node says depends on the node: that its objects wait for data, say.
			if c := reconcilers.GetCondition(resource, conditionType); c != nil && c.Status != isTrue {
				reconcilers.ReportCondition(ctx, resource, metav1.Condition{
					Type: conditionType, Status: isTrue, Reason: string(apis.StateSuspended),
				})
			}
		}
	}
}

// nestedConditions returns the types of the conditions that the nested nodes report, sorted.
func (f *Feature[T]) nestedConditions() []string {
	f.nestedOnce.Do(func() {
		reconcilers.Describe(f.Reconciler).Walk(func(_ string, d reconcilers.Description) {
			f.nested = append(f.nested, d.Conditions...)
		})
		slices.Sort(f.nested)
		f.nested = slices.DeleteFunc(slices.Compact(f.nested), func(t string) bool { return t == f.condition() })
	})
	return f.nested
}

// recordText is the key of the texts in the record of a feature.
type recordText string

// keep stores the record. The conditions that it had before, and that nobody reports any more, are removed. If only the
// texts in it differ, it may stay as it is.
func (f *Feature[T]) keep(
	ctx context.Context, resource T, status *apis.LifecycleStatus, state *resourceState, record apis.FeatureStatus,
) {
	before, found := findRecord(status, record.Name)
	record.Condition, record.Conditions = f.condition(), slices.Clone(f.nestedConditions())
	if state.conditions.isDropped(found, len(before.Conditions) > 0, len(record.Conditions) > 0) {
		record.Conditions = nil
	}
	if state.omitted.isDropped(found, before.OmittedDependents > 0, record.OmittedDependents > 0) {
		record.OmittedDependents = 0
	}
	if equality.Semantic.DeepEqual(before, record) {
		return
	}
	retired := append(slices.Clone(before.Conditions), before.Condition)
	reconcilers.Retire(ctx, resource, slices.DeleteFunc(retired, func(t string) bool {
		return t == record.Condition || slices.Contains(record.Conditions, t)
	})...)
	were, texts := withoutTexts(before)
	are, newest := withoutTexts(record)
	var shown *string
	if equality.Semantic.DeepEqual(were, are) {
		shown = &texts
	}
	if reconcilers.ReportText(ctx, resource, recordText(record.Name), shown, newest) != newest {
		record.Dependents = before.Dependents
	}
	setRecord(status, record)
}

// withoutTexts returns a record without the texts in it, and the texts.
func withoutTexts(record apis.FeatureStatus) (apis.FeatureStatus, string) {
	var texts strings.Builder
	record.Dependents = slices.Clone(record.Dependents)
	for i := range record.Dependents {
		d := &record.Dependents[i]
		// Maps are formatted in the order of their keys.
		_, _ = fmt.Fprintf(&texts, "%q %q\n", d.Message, d.Attributes)
		d.Message, d.Attributes = "", nil
	}
	return record, texts.String()
}
