// Package feature makes nodes into features that people operate: switched by gates, started when prerequisites are
// met, suspended and resumed, and reported by one condition each.
package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/validation"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8svalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Feature supervises the objects of the nodes below it, whether these are children or components, and reports how they
// are by one condition. What was found out is kept in a record in the status, see [apis.FeatureStatus].
//
//   - Runs: the nested node. While the gate is off, its objects are deleted. While a prerequisite is not met, it does
//     not run. While the feature is suspended, its objects are kept so that nothing runs.
//   - Stops: never on its own. A halt of the nested node is returned.
//   - On error: reports and returns it. An error of the gate, of a prerequisite or of Suspended keeps the nested node
//     from running. A [gate.ErrInvalid] is returned as a durable error. A conflict or a quiet error is returned, and
//     changes neither the condition nor the record.
//   - On deletion: runs the nested node, which cleans up, and nothing else.
//
// The objects are those that the nested nodes report, see [reconcilers.Supervisor]. [Table] has what follows from how
// they are. A Feature below another one is withdrawn and suspended with it, and counts there as one object.
//
// The record may be lost. The grace period then starts again. The prerequisites are asked again unless children exist.
type Feature[Type client.Object] struct {
	// Name identifies the node in paths and logs, and its record in the status. It must not change later. Required.
	Name string
	// Condition is the type of the condition. Default: the Name, followed by Ready.
	Condition string
	// Gate says whether the resource has the feature. While it is off, the objects are deleted. Default: on. A function
	// that returns nil means on, too.
	Gate func(ctx context.Context, resource Type) gate.Gate
	// Prerequisites have to be met, in order, before anything of the feature is created. Once all are met, they are not
	// asked again until the gate was off. If there is no record, children that exist say that they were met, see
	// [reconcilers.HaveChildren]. Optional.
	Prerequisites []Prerequisite[Type]
	// Suspended says whether nothing of the feature is to run. Default: false. It is asked neither while the feature is
	// off, nor while a prerequisite is not met, nor while a feature around it is suspended.
	Suspended func(ctx context.Context, resource Type) (bool, error)
	// GracePeriod is how long the feature may take to become healthy, before its condition says Degraded or Down. It
	// starts when the feature is rolled out, resumed, or not healthy any more. A new generation of the resource does
	// not start it again. Zero: it never does.
	GracePeriod time.Duration
	// Health has rules for kinds, in place of those of package health. Optional.
	Health map[schema.GroupKind]func(object client.Object) apis.Health
	// Suspension has rules for kinds, in place of those of package health. Optional.
	Suspension health.Suspensions
	// Pods has the pods of workloads that are not healthy looked at, to say why. The operator then watches pods.
	// Default: false.
	Pods bool
	// Records says which objects have an entry in the record: [RecordAll], or by default those that are not as they
	// should be, and those that a rule of Health gives attributes. The first twenty are recorded. The entries of
	// [RecordAll] that a request did not get to, because a node stopped, stay as they are.
	Records Records
	// Status returns where the records of features are kept. Default: the field Status of the resource, or what is
	// embedded there.
	Status func(resource Type) *apis.LifecycleStatus
	// Reconciler is the nested node. Required.
	Reconciler reconcilers.SubReconciler[Type]

	states reconcilers.ResourceState[*resourceState]
	// nested are the types of the conditions that the nested nodes report.
	nested     []string
	nestedOnce sync.Once
}

// Prerequisite has to be met before a feature is rolled out. [DependsOn] and [DependsOnObject] return some.
type Prerequisite[Type client.Object] struct {
	// Check returns the reason why it is not met, or an empty text if it is. It may read tracked objects, whose events
	// bring the resource back. Required.
	Check func(ctx context.Context, resource Type) (unmet string, err error)
	// Uses lists what Check reads, for the RBAC rules. Their objects are watched, for those that Check tracks.
	// Optional.
	Uses []reconcilers.Access

	// condition is the type of the condition of the resource that has to be True; empty for another prerequisite.
	condition string
}

func (f *Feature[T]) condition() string { return cmp.Or(f.Condition, f.Name+"Ready") }

// SetupWithManager validates, checks that the resource has a place for the record and the condition, and sets up the
// nested node. It returns an error if another feature of the tree has the name or the condition.
func (f *Feature[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	ctx = reconcilers.Enter(ctx, f.Name)
	if err := f.Validate(ctx); err != nil {
		return err
	}
	sample := sampleOf[T](ctx)
	if err := checkStatusOf("Feature", f.Name, f.Status, sample); err != nil {
		return err
	}
	if !gotype.IsNil(sample) && !statusfield.CanHaveConditions(reflect.TypeOf(sample)) {
		return fmt.Errorf("Feature %q reports the condition %s, so %T must have a status with Conditions of type "+
			"[]metav1.Condition", f.Name, f.condition(), sample)
	}
	if err := f.claim(ctx, placeOf(f.Status, sample)); err != nil {
		return err
	}
	if err := f.watch(ctx, bldr); err != nil {
		return err
	}
	return f.Reconciler.SetupWithManager(ctx, mgr, bldr)
}

func (f *Feature[T]) watch(ctx context.Context, bldr *reconcilers.Builder) error {
	for _, use := range f.uses() {
		if bldr == nil {
			return errors.New("there is no builder to add a watch to")
		}
		if err := reconcilers.WatchOptional(ctx, bldr, use.Object); err != nil {
			return err
		}
	}
	return nil
}

// recordClaim and conditionClaim are what a feature has alone of all features of a tree.
type (
	recordClaim struct {
		place statusfield.Place
		name  string
	}
	conditionClaim string
)

func (f *Feature[T]) claim(ctx context.Context, at statusfield.Place) error {
	if claimant, taken := reconcilers.Claim(ctx, recordClaim{at, f.Name}); taken {
		return fmt.Errorf("Feature %q must have another Name than %s", f.Name, claimant)
	}
	if claimant, taken := reconcilers.Claim(ctx, conditionClaim(f.condition())); taken {
		return fmt.Errorf("Feature %q must report another Condition than %s, which %s reports",
			f.Name, f.condition(), claimant)
	}
	return claimAlone(ctx, f.Name, at)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (f *Feature[T]) Validate(ctx context.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	if validator, ok := f.Reconciler.(validation.Validator); ok && validation.IsRecursive(ctx) {
		if err := validator.Validate(ctx); err != nil {
			return fmt.Errorf("Feature %q must have a valid Reconciler: %w", f.Name, err)
		}
	}
	return nil
}

func (f *Feature[T]) check() error {
	switch {
	case f == nil:
		return errors.New("Feature must not be nil")
	case f.Name == "":
		return errors.New(`Feature "" must define Name`)
	case len(k8svalidation.IsQualifiedName(f.condition())) > 0:
		return fmt.Errorf("Feature %q must define a Condition that is a qualified name, not %q", f.Name, f.condition())
	case f.GracePeriod < 0:
		return fmt.Errorf("Feature %q must define a GracePeriod that is not negative", f.Name)
	case f.Records != "" && f.Records != RecordAll:
		return fmt.Errorf("Feature %q must define Records as %q or not at all, not %q", f.Name, RecordAll, f.Records)
	case gotype.IsNil(f.Reconciler):
		return fmt.Errorf("Feature %q must define Reconciler", f.Name)
	}
	for i, prerequisite := range f.Prerequisites {
		if prerequisite.Check == nil {
			return fmt.Errorf("Feature %q must define Check of Prerequisites[%d]", f.Name, i)
		}
	}
	return nil
}

// Describe returns the condition, what the prerequisites read, and the nested node.
func (f *Feature[T]) Describe() reconcilers.Description {
	if f == nil {
		return reconcilers.Description{Kind: "Feature"}
	}
	return reconcilers.Description{
		Kind: "Feature", Name: f.Name, Conditions: []string{f.condition()}, Awaits: f.awaits(), Uses: f.uses(),
		Order: &reconcilers.Order{}, Nodes: []reconcilers.Description{reconcilers.Describe(f.Reconciler)},
	}
}

func (f *Feature[T]) uses() []reconcilers.Access {
	var uses []reconcilers.Access
	for _, prerequisite := range f.Prerequisites {
		uses = append(uses, prerequisite.Uses...)
	}
	if f.Pods {
		uses = append(uses, reconcilers.Access{Object: &corev1.Pod{}, Verbs: []string{"get", "list", "watch"}})
	}
	return uses
}

// awaits returns the types of the conditions that the feature depends on.
func (f *Feature[T]) awaits() []string {
	var types []string
	for _, prerequisite := range f.Prerequisites {
		if prerequisite.condition != "" {
			types = append(types, prerequisite.condition)
		}
	}
	return types
}

// sampleOf returns an object of the type that the node sees.
func sampleOf[T client.Object](ctx context.Context) T {
	if sample, ok := reconcilers.RetrieveResourceType(ctx).(T); ok {
		return sample
	}
	return gotype.Empty[T]()
}
