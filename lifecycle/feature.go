// Package lifecycle makes nodes into features that people operate: switched by gates, started when prerequisites are
// met, suspended and resumed, and reported by one condition each.
package lifecycle

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/suspension"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Feature supervises the objects of the nodes below it, whether these are children or components, and reports how they
// are by one condition.
type Feature[Type client.Object] struct {
	// Name identifies the node in paths and logs, and its record in the status. It must not change later. Required.
	Name string
	// Condition is the type of the condition. Default: the Name, followed by Ready.
	Condition string
	// Gate says whether the resource has the feature. While it is off, the objects are deleted. Default: on.
	Gate func(ctx context.Context, resource Type) feature.Gate
	// Prerequisites have to be met, in order, before anything of the feature is created. Optional.
	Prerequisites []Prerequisite[Type]
	// Suspended says whether nothing of the feature is to run. Default: false.
	Suspended func(resource Type) bool
	// GracePeriod is how long the feature may take to become healthy, before its condition says Degraded or Down. Zero:
	// it never does.
	GracePeriod time.Duration
	// Health has rules for kinds, in place of those of package health. Optional.
	Health map[schema.GroupKind]func(object client.Object) apis.Health
	// Suspension has rules for kinds, in place of those of package suspension. Optional.
	Suspension suspension.Rules
	// Pods has the pods of workloads that are not healthy looked at, to say why. The operator then watches pods.
	Pods bool
	// Status returns where the records of features are kept. Default: the field Status of the resource, or what is
	// embedded there.
	Status func(resource Type) *apis.LifecycleStatus
	// Reconciler is the nested node. Required.
	Reconciler reconcilers.SubReconciler[Type]
}

// Prerequisite has to be met before a feature is rolled out.
type Prerequisite[Type client.Object] struct {
	// Check returns the reason why it is not met, or an empty text if it is. It may read tracked objects, whose events
	// bring the resource back.
	Check func(ctx context.Context, resource Type) (unmet string, err error)
}

var _ = health.Of
