package espalier

import (
	"reflect"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// syncPeriod is the sync period of a manager's cache by default.
const syncPeriod = 10 * time.Hour

// NewConfig returns the config for the manager's cluster, see [reconcilers.NewConfig].
func NewConfig(mgr reconcilers.Manager) reconcilers.Config {
	return reconcilers.NewConfig(mgr, nil, syncPeriod)
}

// For returns the root of a tree that runs the nodes in order, see [reconcilers.ResourceReconciler] and
// [reconcilers.List]. Add it to a manager with SetupWithManager. Its fields may be changed before.
//
// It differs from a literal in what it reports: the condition Ready sums up the conditions of the nodes, and shows an
// error that the tree returned; the status is also written while the resource is terminating, so that it says what the
// deletion waits for; writes of the status and of finalizers record no events, which would take the place of others;
// and a delay that a node asked for is kept when the status was written.
func For[Type client.Object](
	config reconcilers.Config, nodes ...reconcilers.SubReconciler[Type],
) *reconcilers.ResourceReconciler[Type] {
	return &reconcilers.ResourceReconciler[Type]{
		Name:                         kindName[Type](),
		Config:                       config,
		Reconciler:                   Steps(nodes...),
		SummaryCondition:             apis.ConditionReady,
		SyncStatusDuringFinalization: true,
		KeepResultAfterStatusUpdate:  true,
		SkipStatusEvents:             true,
		SkipFinalizerEvents:          true,
		ErrorCondition:               apis.ConditionReady,
	}
}

// kindName returns the name of the Go type, which is the kind by convention.
func kindName[T client.Object]() string {
	return gotype.Name(reflect.TypeFor[T]())
}

// fieldManager returns the name under which the controller of the type applies objects.
func fieldManager[T client.Object]() string {
	return strings.ToLower(kindName[T]()) + "-controller"
}
