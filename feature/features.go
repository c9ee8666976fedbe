package feature

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/validation"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Features runs all features of a resource, sums them up, and forgets those that the code does not have any more.
//
//   - Runs: each feature in order, whatever the others return. Then it removes the records of features that are not
//     below it, with the conditions of these features and of the nodes that were below them. The objects of such a
//     feature stay: switch it off by its gate before you remove it.
//   - Stops: never on its own. If features halted, it halts after the last one.
//   - On error: returns the errors of all features, joined. Beside an error that is to be retried, quiet errors are
//     left out, because they would make it quiet.
//   - On deletion: runs each feature in order.
type Features[Type client.Object] struct {
	// Condition is the type of a condition that sums up the features: True if all of them are, or else like the one
	// with the most important state. Its message starts with the name of that feature. Default: no condition.
	Condition string
	// Status returns where the records of features are kept, as in [Feature]. Only these records are removed. Default:
	// the field Status of the resource, or what is embedded there.
	Status func(resource Type) *apis.LifecycleStatus
	// Features are the features. Each has a name and a condition of its own.
	Features []*Feature[Type]

	known     known
	knownOnce sync.Once
}

// known are the features below a node, and all conditions that are reported there.
type known struct{ names, conditions []string }

// SetupWithManager validates, and sets up the features. It returns an error if a feature elsewhere in the tree keeps
// its record in the same status, because it would be removed.
func (f *Features[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := f.check(); err != nil {
		return err
	}
	sample := sampleOf[T](ctx)
	if err := checkStatusOf("Features", f.Condition, f.Status, sample); err != nil {
		return err
	}
	if f.Condition != "" {
		if !gotype.IsNil(sample) && !statusfield.CanHaveConditions(reflect.TypeOf(sample)) {
			return fmt.Errorf("Features reports the condition %s, so %T must have a status with Conditions of type "+
				"[]metav1.Condition", f.Condition, sample)
		}
		if claimant, taken := reconcilers.Claim(ctx, conditionClaim(f.Condition)); taken {
			return fmt.Errorf("Features must report another Condition than %s, which %s reports", f.Condition, claimant)
		}
	}
	at := placeOf(f.Status, sample)
	if err := claimWhole(ctx, at); err != nil {
		return err
	}
	ctx = context.WithValue(ctx, withinKey{}, at)
	for _, feature := range f.Features {
		if err := feature.SetupWithManager(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// withinKey is the key of the place whose records the enclosing Features has.
type withinKey struct{}

// The claims on a place: by whoever keeps records there, and by a feature that is not below a Features.
type (
	placeClaim statusfield.Place
	aloneClaim statusfield.Place
)

// claimWhole claims all records at a place for a Features.
func claimWhole(ctx context.Context, at statusfield.Place) error {
	if at == (statusfield.Place{}) {
		return nil
	}
	if claimant, taken := reconcilers.Claim(ctx, placeClaim(at)); taken {
		return fmt.Errorf("Features must have all features that keep records in one status, also that of %s: "+
			"move it, or define Status", claimant)
	}
	return nil
}

// claimAlone returns an error if a Features, which this feature is not below, has all records at the place.
func claimAlone(ctx context.Context, name string, at statusfield.Place) error {
	if within, ok := ctx.Value(withinKey{}).(statusfield.Place); at == (statusfield.Place{}) || ok && within == at {
		return nil
	}
	_, taken := reconcilers.Claim(ctx, placeClaim(at))
	_, others := reconcilers.Claim(ctx, aloneClaim(at))
	if taken && !others {
		return fmt.Errorf("Feature %q must be below the Features that has the records in the same status, "+
			"or define another Status", name)
	}
	return nil
}

// Validate checks the features, and that each has a name and a condition of its own.
func (f *Features[T]) Validate(ctx context.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	if !validation.IsRecursive(ctx) {
		return nil
	}
	for _, feature := range f.Features {
		if err := feature.Validate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *Features[T]) check() error {
	names, conditions := map[string]bool{}, map[string]bool{f.Condition: f.Condition != ""}
	for i, feature := range f.Features {
		if feature == nil {
			return fmt.Errorf("Features must define Features[%d]", i)
		}
		if names[feature.Name] {
			return fmt.Errorf("Features must have one Feature with the Name %q", feature.Name)
		}
		if conditions[feature.condition()] {
			return fmt.Errorf("Features must have one node that reports the Condition %q", feature.condition())
		}
		names[feature.Name], conditions[feature.condition()] = true, true
	}
	return nil
}

// Reconcile runs the features, see [Features].
func (f *Features[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if err := f.check(); err != nil {
		return reconcilers.Result{}, err
	}
	var results []reconcilers.Result
	var failures []error
	for _, feature := range f.Features {
		result, err := reconcilers.ReconcileNested(ctx, feature, resource)
		results = append(results, result)
		if err != nil {
			failures = append(failures, err)
		}
	}
	if resource.GetDeletionTimestamp() == nil {
		f.prune(ctx, resource)
		f.sumUp(ctx, resource)
	}
	return reconcilers.AggregateResults(results...), joined(failures)
}

// joined joins the errors of features. A quiet error would make the others quiet.
func joined(failures []error) error {
	var plain []error
	for _, err := range failures {
		switch {
		case !errors.Is(err, reconcilers.ErrQuiet):
			plain = append(plain, err)
		case errors.Is(err, reconcilers.ErrSkipStatusUpdate):
			plain = append(plain, reconcilers.ErrSkipStatusUpdate)
		}
	}
	if !slices.ContainsFunc(plain, func(err error) bool { return err != reconcilers.ErrSkipStatusUpdate }) {
		plain = failures
	}
	if len(plain) == 1 {
		return plain[0]
	}
	return errors.Join(plain...)
}

// prune removes the records of features that are not below the node, and their conditions.
func (f *Features[T]) prune(ctx context.Context, resource T) {
	f.knownOnce.Do(func() {
		f.Describe().Walk(func(_ string, d reconcilers.Description) {
			f.known.conditions = append(f.known.conditions, d.Conditions...)
			if d.Kind == "Feature" {
				f.known.names = append(f.known.names, d.Name)
			}
		})
	})
	status := statusFor(f.Status, resource)
	if status == nil {
		return
	}
	retired := func(r apis.FeatureStatus) bool {
		// The key of an item follows the name, see [reconcilers.ItemName].
		name, _, _ := strings.Cut(r.Name, "[")
		return !slices.Contains(f.known.names, r.Name) && !slices.Contains(f.known.names, name)
	}
	if !slices.ContainsFunc(status.Features, retired) {
		return
	}
	for _, record := range status.Features {
		if !retired(record) {
			continue
		}
		conditions := append(slices.Clone(record.Conditions), record.Condition)
		reconcilers.Retire(ctx, resource, slices.DeleteFunc(conditions, func(t string) bool {
			return slices.Contains(f.known.conditions, t)
		})...)
	}
	// The slice may be shared with what the status was before.
	status.Features = slices.DeleteFunc(slices.Clone(status.Features), retired)
}

// sumUp sets the condition that sums up the features.
func (f *Features[T]) sumUp(ctx context.Context, resource T) {
	if f.Condition == "" {
		return
	}
	var reported []featureCondition
	for _, feature := range f.Features {
		reported = append(reported, featureCondition{
			feature.Name, reconcilers.GetCondition(resource, feature.condition()),
		})
	}
	condition := governing(reported)
	condition.Type = f.Condition
	reconcilers.ReportCondition(ctx, resource, condition)
}

// featureCondition is what a feature reports; nil for nothing yet.
type featureCondition struct {
	name      string
	condition *metav1.Condition
}

// governing returns the condition that sums up features, without a type. It is like the feature with the most important
// state of those that are not True, or of all. Among equals it is the first.
func governing(features []featureCondition) metav1.Condition {
	summary := metav1.Condition{Status: isUnknown, Reason: string(apis.StateUnknown), Message: "there are no features"}
	best := -1
	for _, f := range features {
		c := f.condition
		if c == nil {
			c = &metav1.Condition{
				Status: isUnknown, Reason: string(apis.StateUnknown), Message: "was not reconciled yet",
			}
		}
		importance := rank(apis.State(c.Reason))
		if c.Status == isTrue {
			importance += len(priorities)
		}
		if best >= 0 && importance >= best {
			continue
		}
		best = importance
		text := strings.TrimSuffix(f.name+": "+c.Message, ": ")
		summary = metav1.Condition{Status: c.Status, Reason: c.Reason, Message: message.Truncate(text, maxMessage)}
	}
	return summary
}

// Describe shows the features, and the condition that sums them up.
func (f *Features[T]) Describe() reconcilers.Description {
	if f == nil {
		return reconcilers.Description{Kind: "Features"}
	}
	d := reconcilers.Description{Kind: "Features", Order: &reconcilers.Order{}}
	if f.Condition != "" {
		d.Conditions = []string{f.Condition}
	}
	for _, feature := range f.Features {
		d.Nodes = append(d.Nodes, feature.Describe())
	}
	return d
}
