//lint:file-ignore SA1019 what is deprecated is part of the promise too

package surface_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/fatih/color"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

// Functions of package testing.
var (
	_ func(string, string, int) rtesting.ReactionFunc                           = rtesting.CalledAtMostTimes
	_ func(string) string                                                       = rtesting.ColorizeDiff
	_ func(string, string, ...rtesting.InduceFailureOpts) rtesting.ReactionFunc = rtesting.InduceFailure
	_ func(runtime.ApplyConfiguration) rtesting.ApplyAction                     = rtesting.NewApplyAction
	_ func(rtesting.ApplyAction) rtesting.ApplyRef                              = rtesting.NewApplyRef
	_ func(runtime.ApplyConfiguration, string) rtesting.ApplyAction             = rtesting.NewApplySubresourceAction
	_ func(rtesting.DeleteCollectionAction) rtesting.DeleteCollectionRef        = rtesting.NewDeleteCollectionRef
	_ func(rtesting.DeleteAction) rtesting.DeleteRef                            = rtesting.NewDeleteRef
	_ func(client.Object, *runtime.Scheme) rtesting.DeleteRef                   = rtesting.NewDeleteRefFromObject
	_ func(rtesting.PatchAction) rtesting.PatchRef                              = rtesting.NewPatchRef
	_ func(client.Object, client.Object, *runtime.Scheme) rtesting.TrackRequest = rtesting.NewTrackRequest
	_ func() stash.Stasher[child]                                               = rtesting.ObjectManagerReconcilerTestHarnessActualStasher[child]
	_ func() stash.Stasher[child]                                               = rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[child]
	_ func() stash.Stasher[child]                                               = rtesting.ObjectManagerReconcilerTestHarnessResultStasher[child]

	_ func(client.Object, *runtime.Scheme, string, string, string, ...interface{}) rtesting.Event                        = rtesting.NewEvent
	_ func(client.Object, client.Object, *runtime.Scheme, string, string, string, string, ...interface{}) rtesting.Event = rtesting.NewEventf

	_ rtesting.TestClient   = rtesting.NewFakeClientWrapper(client.Client(nil), clientgotesting.ObjectTracker(nil))
	_ rtesting.TrackRequest = rtesting.CreateTrackRequest("", "ConfigMap", "ns", "name").By("ns", "name")
)

// Variables.
var (
	_ rtesting.Differ = rtesting.DefaultDiffer
	_ *color.Color    = rtesting.DiffAddedColor
	_ *color.Color    = rtesting.DiffRemovedColor
	_ cmp.Option      = rtesting.IgnoreCreationTimestamp
	_ cmp.Option      = rtesting.IgnoreLastTransitionTime
	_ cmp.Option      = rtesting.IgnoreResourceVersion
	_ cmp.Option      = rtesting.IgnoreTypeMeta
	_ cmp.Option      = rtesting.NormalizeApplyConfiguration
	_ cmp.Option      = rtesting.NormalizeFieldSelector
	_ cmp.Option      = rtesting.NormalizeLabelSelector
)

// Aliases.
var (
	_ clientgotesting.Reactor                = rtesting.Reactor(nil)
	_ clientgotesting.ReactionFunc           = rtesting.ReactionFunc(nil)
	_ clientgotesting.Action                 = rtesting.Action(nil)
	_ clientgotesting.GetAction              = rtesting.GetAction(nil)
	_ clientgotesting.ListAction             = rtesting.ListAction(nil)
	_ clientgotesting.CreateAction           = rtesting.CreateAction(nil)
	_ clientgotesting.UpdateAction           = rtesting.UpdateAction(nil)
	_ clientgotesting.PatchAction            = rtesting.PatchAction(nil)
	_ clientgotesting.DeleteAction           = rtesting.DeleteAction(nil)
	_ clientgotesting.DeleteCollectionAction = rtesting.DeleteCollectionAction(nil)
	_ rtesting.ApplyAction                   = rtesting.ApplyActionImpl{ActionImpl: clientgotesting.ActionImpl{}, Name: "", ApplyConfiguration: runtime.ApplyConfiguration(nil)}
)

// Refs, events and tracks.
var (
	_ = rtesting.PatchRef{Group: "", Kind: "", Namespace: "", Name: "", SubResource: "", PatchType: types.PatchType(""), Patch: []byte(nil)}
	_ = rtesting.DeleteRef{Group: "", Kind: "", Namespace: "", Name: ""}
	_ = rtesting.DeleteCollectionRef{Group: "", Kind: "", Namespace: "", Labels: labels.Selector(nil), Fields: fields.Selector(nil)}
	_ = rtesting.ApplyRef{Group: "", Kind: "", Namespace: "", Name: "", ApplyConfiguration: runtime.ApplyConfiguration(nil)}
	_ = rtesting.Event{
		TypeMeta: metav1.TypeMeta{}, NamespacedName: types.NamespacedName{}, Related: (*corev1.ObjectReference)(nil),
		Type: "", Reason: "", Message: "", Action: "", Note: "",
	}
	_ = rtesting.TrackRequest{Tracker: types.NamespacedName{}, Tracked: tracker.Key{}, TrackedReference: tracker.Reference{}}
	_ = rtesting.InduceFailureOpts{Error: error(nil), Namespace: "", Name: "", SubResource: ""}
)

// Cases, with all fields that a program may set.
var (
	objects   []client.Object
	reactors  []rtesting.ReactionFunc
	withFakes func(*fake.ClientBuilder) *fake.ClientBuilder

	_ = rtesting.ReconcilerTestCase{
		Name: "", Focus: false, Skip: false, Metadata: map[string]interface{}(nil), Request: reconcilers.Request{}, WithReactors: reactors,
		WithClientBuilder: withFakes, StatusSubResourceTypes: objects, GivenObjects: objects, APIGivenObjects: objects,
		GivenAPIResources: []*metav1.APIResourceList(nil), GivenTracks: []rtesting.TrackRequest(nil),
		ExpectTracks: []rtesting.TrackRequest(nil), ExpectEvents: []rtesting.Event(nil), ExpectApplies: []rtesting.ApplyRef(nil), ExpectCreates: objects,
		ExpectUpdates: objects, ExpectPatches: []rtesting.PatchRef(nil), ExpectDeletes: []rtesting.DeleteRef(nil),
		ExpectDeleteCollections: []rtesting.DeleteCollectionRef(nil), ExpectStatusUpdates: objects,
		ExpectStatusPatches: []rtesting.PatchRef(nil), ExpectStatusApplies: []rtesting.ApplyRef(nil),
		AdditionalConfigs: map[string]rtesting.ExpectConfig(nil), ShouldErr: false, ExpectedResult: reconcilers.Result{}, Verify: rtesting.VerifyFunc(nil),
		Prepare: func(*testing.T, context.Context, *rtesting.ReconcilerTestCase) (context.Context, error) {
			return nil, nil
		},
		CleanUp: func(*testing.T, context.Context, *rtesting.ReconcilerTestCase) error { return nil },
		Now:     time.Time{}, Differ: rtesting.Differ(nil),
	}
	_ = rtesting.SubReconcilerTestCase[resource]{
		Name: "", Focus: false, Skip: false, Metadata: map[string]interface{}(nil), Resource: resource(nil), ExpectResource: resource(nil), WithReactors: reactors,
		GivenStashedValues: map[stash.Key]interface{}(nil), ExpectStashedValues: map[stash.Key]interface{}(nil),
		VerifyStashedValue: rtesting.VerifyStashedValueFunc(nil),
		WithClientBuilder:  withFakes, StatusSubResourceTypes: objects, GivenObjects: objects, APIGivenObjects: objects,
		GivenAPIResources: []*metav1.APIResourceList(nil), GivenTracks: []rtesting.TrackRequest(nil),
		ExpectTracks: []rtesting.TrackRequest(nil), ExpectEvents: []rtesting.Event(nil), ExpectApplies: []rtesting.ApplyRef(nil), ExpectCreates: objects,
		ExpectUpdates: objects, ExpectPatches: []rtesting.PatchRef(nil), ExpectDeletes: []rtesting.DeleteRef(nil),
		ExpectDeleteCollections: []rtesting.DeleteCollectionRef(nil),
		AdditionalConfigs:       map[string]rtesting.ExpectConfig(nil), ShouldErr: false, ShouldPanic: false, ExpectedResult: reconcilers.Result{},
		Verify: rtesting.VerifyFunc(nil),
		Prepare: func(*testing.T, context.Context, *rtesting.SubReconcilerTestCase[resource]) (context.Context, error) {
			return nil, nil
		},
		CleanUp: func(*testing.T, context.Context, *rtesting.SubReconcilerTestCase[resource]) error { return nil },
		Now:     time.Time{}, Differ: rtesting.Differ(nil), AdditionalReconciles: []rtesting.SubReconcilerTestCase[resource](nil),
	}
	_ = rtesting.AdmissionWebhookTestCase{
		Name: "", Focus: false, Skip: false, Metadata: map[string]interface{}(nil), Request: (*admission.Request)(nil), HTTPRequest: (*http.Request)(nil),
		WithReactors: reactors, WithClientBuilder: withFakes, StatusSubResourceTypes: objects, GivenObjects: objects, APIGivenObjects: objects,
		GivenAPIResources: []*metav1.APIResourceList(nil), GivenTracks: []rtesting.TrackRequest(nil),
		ExpectTracks: []rtesting.TrackRequest(nil), ExpectEvents: []rtesting.Event(nil), ExpectApplies: []rtesting.ApplyRef(nil), ExpectCreates: objects,
		ExpectUpdates: objects, ExpectPatches: []rtesting.PatchRef(nil), ExpectDeletes: []rtesting.DeleteRef(nil),
		ExpectDeleteCollections: []rtesting.DeleteCollectionRef(nil), ExpectStatusUpdates: objects,
		ExpectStatusPatches: []rtesting.PatchRef(nil), ExpectStatusApplies: []rtesting.ApplyRef(nil),
		ShouldPanic: false, ExpectedResponse: admission.Response{},
		Prepare: func(*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase) (context.Context, error) {
			return nil, nil
		},
		CleanUp: func(*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase) error { return nil },
		Now:     time.Time{}, Differ: rtesting.Differ(nil),
	}
	_ = &rtesting.ExpectConfig{
		Name: "", Scheme: (*runtime.Scheme)(nil), Differ: rtesting.Differ(nil), StatusSubResourceTypes: objects, GivenObjects: objects, APIGivenObjects: objects,
		GivenAPIResources: []*metav1.APIResourceList(nil), WithClientBuilder: withFakes, WithReactors: reactors,
		GivenTracks: []rtesting.TrackRequest(nil), ExpectTracks: []rtesting.TrackRequest(nil), ExpectEvents: []rtesting.Event(nil),
		ExpectApplies: []rtesting.ApplyRef(nil), ExpectCreates: objects, ExpectUpdates: objects, ExpectPatches: []rtesting.PatchRef(nil),
		ExpectDeletes: []rtesting.DeleteRef(nil), ExpectDeleteCollections: []rtesting.DeleteCollectionRef(nil),
		ExpectStatusUpdates: objects, ExpectStatusPatches: []rtesting.PatchRef(nil), ExpectStatusApplies: []rtesting.ApplyRef(nil),
	}

	_ func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler                               = rtesting.ReconcilerFactory(nil)
	_ func(*testing.T, *rtesting.SubReconcilerTestCase[resource], reconcilers.Config) reconcilers.SubReconciler[resource]   = rtesting.SubReconcilerFactory[resource](nil)
	_ func(*testing.T, *rtesting.AdmissionWebhookTestCase, reconcilers.Config) *admission.Webhook                           = rtesting.AdmissionWebhookFactory(nil)
	_ func(*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config) (*admission.Webhook, error) = rtesting.AdmissionWebhookFactoryWithContext(nil)
	_ func(*testing.T, reconcilers.Result, error)                                                                           = rtesting.VerifyFunc(nil)
	_ func(t *testing.T, key stash.Key, expected, actual interface{})                                                       = rtesting.VerifyStashedValueFunc(nil)
	_ func(rtesting.ReconcilerTests, *testing.T, *runtime.Scheme, rtesting.ReconcilerFactory)                               = rtesting.ReconcilerTests.Run
	_ func(rtesting.ReconcilerTestSuite, *testing.T, *runtime.Scheme, rtesting.ReconcilerFactory)                           = rtesting.ReconcilerTestSuite.Run
	_ func(*rtesting.ReconcilerTestCase, *testing.T, *runtime.Scheme, rtesting.ReconcilerFactory)                           = (*rtesting.ReconcilerTestCase).Run
	_ func(rtesting.SubReconcilerTests[resource], *testing.T, *runtime.Scheme, rtesting.SubReconcilerFactory[resource])     = rtesting.SubReconcilerTests[resource].Run
	_ func(rtesting.SubReconcilerTestSuite[resource], *testing.T, *runtime.Scheme, rtesting.SubReconcilerFactory[resource]) = rtesting.SubReconcilerTestSuite[resource].Run
	_ func(*rtesting.SubReconcilerTestCase[resource], *testing.T, *runtime.Scheme, rtesting.SubReconcilerFactory[resource]) = (*rtesting.SubReconcilerTestCase[resource]).Run
	_ func(rtesting.AdmissionWebhookTests, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactory)                   = rtesting.AdmissionWebhookTests.Run
	_ func(rtesting.AdmissionWebhookTestSuite, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactory)               = rtesting.AdmissionWebhookTestSuite.Run
	_ func(*rtesting.AdmissionWebhookTestCase, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactory)               = (*rtesting.AdmissionWebhookTestCase).Run
	_ func(rtesting.AdmissionWebhookTests, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactoryWithContext)        = rtesting.AdmissionWebhookTests.RunWithContext
	_ func(rtesting.AdmissionWebhookTestSuite, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactoryWithContext)    = rtesting.AdmissionWebhookTestSuite.RunWithContext
	_ func(*rtesting.AdmissionWebhookTestCase, *testing.T, *runtime.Scheme, rtesting.AdmissionWebhookFactoryWithContext)    = (*rtesting.AdmissionWebhookTestCase).RunWithContext
	_ func(*rtesting.ExpectConfig) reconcilers.Config                                                                       = (*rtesting.ExpectConfig).Config

	_ []func(*rtesting.ExpectConfig, *testing.T) = []func(*rtesting.ExpectConfig, *testing.T){
		(*rtesting.ExpectConfig).AssertExpectations, (*rtesting.ExpectConfig).AssertClientExpectations,
		(*rtesting.ExpectConfig).AssertClientApplyExpectations, (*rtesting.ExpectConfig).AssertClientCreateExpectations,
		(*rtesting.ExpectConfig).AssertClientUpdateExpectations, (*rtesting.ExpectConfig).AssertClientPatchExpectations,
		(*rtesting.ExpectConfig).AssertClientDeleteExpectations, (*rtesting.ExpectConfig).AssertClientDeleteCollectionExpectations,
		(*rtesting.ExpectConfig).AssertClientStatusUpdateExpectations, (*rtesting.ExpectConfig).AssertClientStatusPatchExpectations,
		(*rtesting.ExpectConfig).AssertClientStatusApplyExpectations, (*rtesting.ExpectConfig).AssertRecorderExpectations,
		(*rtesting.ExpectConfig).AssertTrackerExpectations,
	}

	_ reconcilers.ObjectManager[child]         = &rtesting.StubObjectManager[child]{}
	_ reconcilers.SubReconciler[client.Object] = &rtesting.ObjectManagerReconcilerTestHarness[child]{ObjectManager: reconcilers.ObjectManager[child](nil)}

	_ interface {
		client.Client
		AddGiven(objs ...client.Object)
		AddReactor(verb, kind string, reaction rtesting.ReactionFunc)
		PrependReactor(verb, kind string, reaction rtesting.ReactionFunc)
	} = rtesting.TestClient(nil)

	// Somebody else's differ is one too.
	_ rtesting.Differ = interface {
		Result(expected, actual reconcilers.Result) string
		TrackRequest(expected, actual rtesting.TrackRequest) string
		Event(expected, actual rtesting.Event) string
		ApplyRef(expected, actual rtesting.ApplyRef) string
		PatchRef(expected, actual rtesting.PatchRef) string
		DeleteRef(expected, actual rtesting.DeleteRef) string
		DeleteCollectionRef(expected, actual rtesting.DeleteCollectionRef) string
		StashedValue(expected, actual any, key stash.Key) string
		Resource(expected, actual client.Object) string
		ResourceStatusUpdate(expected, actual client.Object) string
		ResourceUpdate(expected, actual client.Object) string
		ResourceCreate(expected, actual client.Object) string
		WebhookResponse(expected, actual admission.Response) string
	}(nil)
)
