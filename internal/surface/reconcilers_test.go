//lint:file-ignore SA1019 what is deprecated is part of the promise too

package surface_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/tracker"
	"github.com/espalier-dev/espalier/validation"
)

// The types of the programs: a resource, and a child with its list.
type (
	resource  = *corev1.Service
	child     = *corev1.ConfigMap
	childList = *corev1.ConfigMapList

	setup = func(context.Context, ctrl.Manager, *builder.Builder) error
)

// Functions.
var (
	_ func(context.Context, client.Object, string) error                   = reconcilers.AddFinalizer
	_ func(context.Context, client.Object, string) error                   = reconcilers.ClearFinalizer
	_ func(...reconcilers.Result) reconcilers.Result                       = reconcilers.AggregateResults
	_ func() stash.Stasher[reconcilers.Cursor[string]]                     = reconcilers.CursorStasher[string]
	_ func(context.Context) handler.EventHandler                           = reconcilers.EnqueueTracked
	_ func(...map[string]string) map[string]string                         = reconcilers.MergeMaps
	_ func(ctrl.Manager, client.Object, time.Duration) reconcilers.Config  = reconcilers.NewConfig
	_ func(client.Object, client.Object) (*reconcilers.Patch, error)       = reconcilers.NewPatch
	_ func(stash.Key) stash.Stasher[string]                                = reconcilers.NewStasher[string]
	_ func(context.Context) map[string]reconcilers.Config                  = reconcilers.RetrieveAdditionalConfigs
	_ func(context.Context) admission.Request                              = reconcilers.RetrieveAdmissionRequest
	_ func(context.Context) *admission.Response                            = reconcilers.RetrieveAdmissionResponse
	_ func(context.Context) (reconcilers.Config, error)                    = reconcilers.RetrieveConfig
	_ func(context.Context) reconcilers.Config                             = reconcilers.RetrieveConfigOrDie
	_ func(context.Context) *http.Request                                  = reconcilers.RetrieveHTTPRequest
	_ func(context.Context) int                                            = reconcilers.RetrieveIteration
	_ func(context.Context) []child                                        = reconcilers.RetrieveKnownChildren[child]
	_ func(context.Context) (reconcilers.Config, error)                    = reconcilers.RetrieveOriginalConfig
	_ func(context.Context) reconcilers.Config                             = reconcilers.RetrieveOriginalConfigOrDie
	_ func(context.Context) client.Object                                  = reconcilers.RetrieveOriginalResourceType
	_ func(context.Context) reconcilers.Request                            = reconcilers.RetrieveRequest
	_ func(context.Context) client.Object                                  = reconcilers.RetrieveResourceType
	_ func(context.Context, map[string]reconcilers.Config) context.Context = reconcilers.StashAdditionalConfigs
	_ func(context.Context, admission.Request) context.Context             = reconcilers.StashAdmissionRequest
	_ func(context.Context, *admission.Response) context.Context           = reconcilers.StashAdmissionResponse
	_ func(context.Context, reconcilers.Config) context.Context            = reconcilers.StashConfig
	_ func(context.Context, *http.Request) context.Context                 = reconcilers.StashHTTPRequest
	_ func(context.Context, reconcilers.Config) context.Context            = reconcilers.StashOriginalConfig
	_ func(context.Context, client.Object) context.Context                 = reconcilers.StashOriginalResourceType
	_ func(context.Context, reconcilers.Request) context.Context           = reconcilers.StashRequest
	_ func(context.Context, client.Object) context.Context                 = reconcilers.StashResourceType
	_ func(context.Context) context.Context                                = reconcilers.WithStash
	_ func(context.Context, stash.Key, interface{})                        = reconcilers.StashValue
	_ func(context.Context, stash.Key) interface{}                         = reconcilers.RetrieveValue
	_ func(context.Context, stash.Key) bool                                = reconcilers.HasValue
	_ func(context.Context, stash.Key) interface{}                         = reconcilers.ClearValue
)

// Variables.
var (
	_ error      = reconcilers.ErrDurable
	_ error      = reconcilers.ErrHaltSubReconcilers
	_ error      = reconcilers.ErrQuiet
	_ error      = reconcilers.ErrSkipStatusUpdate
	_ error      = reconcilers.ErrStashValueNotAssignable
	_ error      = reconcilers.ErrStashValueNotFound
	_ error      = reconcilers.OnlyReconcileChildStatus
	_ error      = reconcilers.PatchGenerationMismatch
	_ error      = &reconcilers.ErrMaxIterations{Iterations: 1}
	_ cmp.Option = reconcilers.IgnoreAllUnexported
)

// Aliases: values of one are values of the other.
var (
	_ *builder.Builder         = (*reconcilers.Builder)(nil)
	_ manager.Manager          = (reconcilers.Manager)(nil)
	_ reconcile.Request        = reconcilers.Request{}
	_ reconcile.Result         = reconcilers.Result{}
	_ validation.Defaulter     = (reconcilers.Defaulter)(nil)
	_ stash.Key                = reconcilers.StashKey("")
	_ stash.Stasher[time.Time] = (reconcilers.Stasher[time.Time])(nil)
)

// Interfaces, and who implements them.
var (
	_ reconcile.Reconciler = (*reconcilers.ResourceReconciler[client.Object])(nil)
	_ reconcile.Reconciler = (*reconcilers.AggregateReconciler[client.Object])(nil)
	_ admission.Handler    = (*reconcilers.AdmissionWebhookAdapter[client.Object])(nil)

	_ []reconcilers.SubReconciler[resource] = []reconcilers.SubReconciler[resource]{
		&reconcilers.SyncReconciler[resource]{}, &reconcilers.ChildReconciler[resource, child, childList]{},
		&reconcilers.ChildSetReconciler[resource, child, childList]{}, reconcilers.Sequence[resource]{}, &reconcilers.Sequence[resource]{},
		reconcilers.Always[resource]{}, &reconcilers.Always[resource]{}, &reconcilers.Advice[resource]{}, &reconcilers.IfThen[resource]{},
		&reconcilers.While[resource]{}, &reconcilers.ForEach[resource, string]{}, &reconcilers.TryCatch[resource]{},
		&reconcilers.OverrideSetup[resource]{}, &reconcilers.CastResource[resource, child]{}, &reconcilers.WithConfig[resource]{},
		&reconcilers.WithFinalizer[resource]{}, &reconcilers.SuppressTransientErrors[resource, *corev1.ServiceList]{},
	}
	_ []validation.Validator = []validation.Validator{
		&reconcilers.ResourceReconciler[resource]{}, &reconcilers.AggregateReconciler[resource]{}, &reconcilers.AdmissionWebhookAdapter[resource]{},
		&reconcilers.SyncReconciler[resource]{}, &reconcilers.ChildReconciler[resource, child, childList]{},
		&reconcilers.ChildSetReconciler[resource, child, childList]{}, &reconcilers.Sequence[resource]{}, &reconcilers.Always[resource]{},
		&reconcilers.Advice[resource]{}, &reconcilers.IfThen[resource]{}, &reconcilers.While[resource]{}, &reconcilers.ForEach[resource, string]{},
		&reconcilers.TryCatch[resource]{}, &reconcilers.OverrideSetup[resource]{}, &reconcilers.CastResource[resource, child]{},
		&reconcilers.WithConfig[resource]{}, &reconcilers.WithFinalizer[resource]{},
		&reconcilers.SuppressTransientErrors[resource, *corev1.ServiceList]{}, &reconcilers.UpdatingObjectManager[child]{},
	}
	_ reconcilers.ObjectManager[child] = &reconcilers.UpdatingObjectManager[child]{}
)

var _ = reconcilers.Config{
	Client: client.Client(nil), APIReader: client.Reader(nil), Discovery: discovery.DiscoveryInterface(nil),
	Recorder: record.EventRecorder(nil), EventRecorder: events.EventRecorder(nil), Tracker: tracker.Tracker(nil),
}

var (
	_ func(reconcilers.Config) bool                                                                             = reconcilers.Config.IsEmpty
	_ func(reconcilers.Config, cluster.Cluster) reconcilers.Config                                              = reconcilers.Config.WithCluster
	_ func(reconcilers.Config) reconcilers.Config                                                               = reconcilers.Config.WithTracker
	_ func(reconcilers.Config) reconcilers.Config                                                               = reconcilers.Config.WithDangerousDuckClientOperations
	_ func(*reconcilers.Patch, client.Object) error                                                             = (*reconcilers.Patch).Apply
	_ func(*reconcilers.ChildSetResult[child]) error                                                            = (*reconcilers.ChildSetResult[child]).AggregateError
	_ func(*reconcilers.UpdatingObjectManager[child], context.Context) error                                    = (*reconcilers.UpdatingObjectManager[child]).Setup
	_ func(reconcilers.Config, context.Context, types.NamespacedName, client.Object, ...client.GetOption) error = reconcilers.Config.TrackAndGet
	_ func(reconcilers.Config, context.Context, client.ObjectList, ...client.ListOption) error                  = reconcilers.Config.TrackAndList

	_ func(*reconcilers.ResourceReconciler[resource], context.Context, ctrl.Manager) error                           = (*reconcilers.ResourceReconciler[resource]).SetupWithManager
	_ func(*reconcilers.ResourceReconciler[resource], context.Context, ctrl.Manager) (controller.Controller, error)  = (*reconcilers.ResourceReconciler[resource]).SetupWithManagerYieldingController
	_ func(*reconcilers.AggregateReconciler[resource], context.Context, ctrl.Manager) error                          = (*reconcilers.AggregateReconciler[resource]).SetupWithManager
	_ func(*reconcilers.AggregateReconciler[resource], context.Context, ctrl.Manager) (controller.Controller, error) = (*reconcilers.AggregateReconciler[resource]).SetupWithManagerYieldingController
	_ func(*reconcilers.AdmissionWebhookAdapter[resource]) *admission.Webhook                                        = (*reconcilers.AdmissionWebhookAdapter[resource]).Build
	_ func(*reconcilers.AdmissionWebhookAdapter[resource], context.Context) (*admission.Webhook, error)              = (*reconcilers.AdmissionWebhookAdapter[resource]).BuildWithContext
)

// The structs with all fields that a program may set.
var (
	before = func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
		return ctx, reconcilers.Result{}, nil
	}
	after = func(_ context.Context, _ reconcilers.Request, r reconcilers.Result, err error) (reconcilers.Result, error) {
		return r, err
	}
	desiredChild = func(context.Context, resource) (child, error) { return nil, nil }
	listOptions  = func(context.Context, resource) []client.ListOption { return nil }
	ourChild     = func(resource, child) bool { return true }
	sub          = reconcilers.SubReconciler[resource](nil)
	manage       = reconcilers.ObjectManager[child](nil)

	_ = reconcilers.ResourceReconciler[resource]{
		Name: "", Setup: setup(nil), SetupForOptions: []builder.ForOption(nil), Type: resource(nil), SkipStatusUpdate: false,
		SyncStatusDuringFinalization: false, Reconciler: sub, BeforeReconcile: before, AfterReconcile: after,
		SkipRequest:  func(context.Context, reconcilers.Request) bool { return false },
		SkipResource: func(context.Context, resource) bool { return false }, Config: reconcilers.Config{},
	}
	_ = reconcilers.AggregateReconciler[child]{
		Name: "", Setup: setup(nil), SetupForOptions: []builder.ForOption(nil), Type: child(nil), Request: reconcilers.Request{},
		Reconciler: reconcilers.SubReconciler[child](nil), DesiredResource: func(context.Context, child) (child, error) { return nil, nil },
		AggregateObjectManager: manage, BeforeReconcile: before, AfterReconcile: after, Config: reconcilers.Config{},
		MergeBeforeUpdate: func(child, child) {}, Sanitize: func(child) interface{} { return nil },
	}
	_ = reconcilers.AdmissionWebhookAdapter[resource]{
		Name: "", Type: resource(nil), Reconciler: sub, Config: reconcilers.Config{},
		BeforeHandle: func(ctx context.Context, _ admission.Request, _ *admission.Response) context.Context { return ctx },
		AfterHandle:  func(context.Context, admission.Request, *admission.Response) {},
	}
	_ = reconcilers.SyncReconciler[resource]{
		Name: "", Setup: setup(nil), SyncDuringFinalization: false,
		Sync:               func(context.Context, resource) error { return nil },
		SyncWithResult:     func(context.Context, resource) (reconcilers.Result, error) { return reconcilers.Result{}, nil },
		Finalize:           func(context.Context, resource) error { return nil },
		FinalizeWithResult: func(context.Context, resource) (reconcilers.Result, error) { return reconcilers.Result{}, nil },
	}
	_ = reconcilers.ChildReconciler[resource, child, childList]{
		Name: "", ChildType: child(nil), ChildListType: childList(nil), SkipOwnerReference: false, Setup: setup(nil),
		DesiredChild:                        desiredChild,
		ReflectChildStatusOnParent:          func(context.Context, resource, child, error) {},
		ReflectChildStatusOnParentWithError: func(context.Context, resource, child, error) error { return nil },
		ReflectedChildErrorReasons:          []metav1.StatusReason(nil), ChildObjectManager: manage, ListOptions: listOptions, OurChild: ourChild,
		Finalizer: "", MergeBeforeUpdate: func(child, child) {}, Sanitize: func(child) interface{} { return nil },
	}
	_ = reconcilers.ChildSetReconciler[resource, child, childList]{
		Name: "", ChildType: child(nil), ChildListType: childList(nil), Finalizer: "", SkipOwnerReference: false, Setup: setup(nil),
		DesiredChildren: func(context.Context, resource) ([]child, error) { return nil, nil }, ChildObjectManager: manage,
		ReflectChildrenStatusOnParent:          func(context.Context, resource, reconcilers.ChildSetResult[child]) {},
		ReflectChildrenStatusOnParentWithError: func(context.Context, resource, reconcilers.ChildSetResult[child]) error { return nil },
		ReflectedChildErrorReasons:             []metav1.StatusReason(nil), ListOptions: listOptions, OurChild: ourChild,
		IdentifyChild: func(child) string { return "" },
	}
	_ = reconcilers.ChildSetResult[child]{Children: []reconcilers.ChildSetPartialResult[child]{{Id: "", Child: child(nil), Err: error(nil)}}}
	_ = reconcilers.UpdatingObjectManager[child]{
		Name: "", Type: child(nil), Finalizer: "", TrackDesired: false, HarmonizeImmutableFields: func(child, child) {},
		MergeBeforeUpdate: func(child, child) {}, Sanitize: func(child) interface{} { return nil }, DangerouslyAllowDuckTypes: false,
	}
	_ = reconcilers.Advice[resource]{
		Name: "", Setup: setup(nil), Reconciler: sub,
		Before: func(context.Context, resource) (context.Context, reconcilers.Result, error) {
			return nil, reconcilers.Result{}, nil
		},
		Around: func(context.Context, resource, reconcilers.SubReconciler[resource]) (reconcilers.Result, error) {
			return reconcilers.Result{}, nil
		},
		After: func(context.Context, resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return reconcilers.Result{}, nil
		},
	}
	_ = reconcilers.IfThen[resource]{Name: "", Setup: setup(nil), If: func(context.Context, resource) bool { return true }, Then: sub, Else: sub}
	_ = reconcilers.While[resource]{Name: "", Setup: setup(nil), Condition: func(context.Context, resource) bool { return true }, Reconciler: sub, MaxIterations: (*int)(nil)}
	_ = reconcilers.ForEach[resource, string]{Name: "", Setup: setup(nil), Reconciler: sub, Items: func(context.Context, resource) ([]string, error) { return nil, nil }}
	_ = reconcilers.Cursor[string]{Index: 0, Length: 0, Item: ""}
	_ = reconcilers.TryCatch[resource]{
		Name: "", Setup: setup(nil), Try: sub, Finally: sub,
		Catch: func(context.Context, resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return reconcilers.Result{}, nil
		},
	}
	_ = reconcilers.OverrideSetup[resource]{Name: "", Setup: setup(nil), Reconciler: sub}
	_ = reconcilers.CastResource[resource, child]{Name: "", Reconciler: reconcilers.SubReconciler[child](nil)}
	_ = reconcilers.WithConfig[resource]{Name: "", Reconciler: sub, Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
		return reconcilers.Config{}, nil
	}}
	_ = reconcilers.WithFinalizer[resource]{Name: "", Finalizer: "", Reconciler: sub, ReadyToClearFinalizer: func(context.Context, resource) bool { return true }}
	_ = reconcilers.SuppressTransientErrors[resource, *corev1.ServiceList]{Name: "", ListType: (*corev1.ServiceList)(nil), Setup: setup(nil), Threshold: uint8(3), Reconciler: sub}
)

// A Config can be compared: programs do.
func TestConfigIsComparable(t *testing.T) {
	if (reconcilers.Config{}) != (reconcilers.Config{}) {
		t.Error("an empty config is not itself, want that it is")
	}
}
