package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The event of a child that goes at once may be there before the request that deleted it ends.
func TestAChildSetTracksItsLastChildrenBeforeTheyGo(t *testing.T) {
	child := givenPart("a", ownerless)
	expect := expectWidget(widget.With(terminating(ours)), child)
	var config reconcilers.Config
	woken := -1
	expect.WithReactors = []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "delete" {
			observers, err := config.Tracker.GetObservers(child)
			if err != nil {
				t.Error(err)
			}
			woken = len(observers)
		}
		return false, nil, nil
	}}
	config = expect.Config()
	root := &widgetRoot{Config: config, Reconciler: changedSet(nil, guardedSet)(&trace{})}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil || woken != 1 {
		t.Errorf("the child is deleted while %d resources hear of it (%v), want 1 and no error", woken, err)
	}
}

// A child that was going already may be gone before it is tracked.
func TestAChildSetComesBackForAChildThatIsGoneMeanwhile(t *testing.T) {
	expect := expectWidget()
	expect.GivenObjects = []client.Object{givenPart("a", ownerless, leaving)}
	expect.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap",
		rtesting.InduceFailureOpts{Error: apierrs.NewNotFound(configMapResource, "gadget-a")})}
	node := changedSet(nil, guardedSet)(&trace{})
	result, err := node.Reconcile(testContext(t, expect.Config()), widget.With(terminating(ours)).Object())
	if err != nil || result != requeue {
		t.Errorf("it returned %+v and %v, want %+v and no error", result, err, requeue)
	}
}

// A failure that is kept silent is tried again with back-off, also if another node asks for a delay (invariant L6).
func TestL6ASuppressedErrorDoesNotWaitForADelay(t *testing.T) {
	root := &widgetRoot{
		Config: expectWidget(steadyWidget).Config(),
		Reconciler: reconcilers.Always[*resources.Widget]{
			(&trace{}).step("slow", reconcilers.Result{RequeueAfter: 10 * time.Hour}, nil),
			&reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
				Reconciler: (&trace{}).step("fails", reconcilers.Result{}, errBoom),
			},
		},
	}
	for attempt := range 3 {
		result, err := root.Reconcile(rtime.StashNow(t.Context(), requestTime), widgetRequest)
		if attempt < 2 && (err != nil || result != requeue) {
			t.Errorf("attempt %d returned %+v and %v, want %+v and no error", attempt, result, err, requeue)
		}
		if attempt == 2 && !errors.Is(err, errBoom) {
			t.Errorf("the last attempt returned %v, want %v", err, errBoom)
		}
	}
}

// What an author writes into unstructured content is no reason to panic (invariant L7).
func TestL7AnAggregateTakesIntegersOfAnyType(t *testing.T) {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	expect := expectWidget()
	root := &reconcilers.AggregateReconciler[*unstructured.Unstructured]{
		Type:    sample,
		Request: widgetRequest,
		Config:  expect.Config(),
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, u *unstructured.Unstructured) error {
				u.Object["data"] = map[string]any{"replicas": 3}
				return nil
			},
		},
		MergeBeforeUpdate: func(current, desired *unstructured.Unstructured) { current.Object["data"] = desired.Object["data"] },
	}
	// Whether the API server takes it is another matter.
	_, _ = root.Reconcile(t.Context(), widgetRequest)
}

// To apply a copy of an object is to claim what others own (invariant L4).
func TestL4AppliesOnlyWhatIsMadeFromScratch(t *testing.T) {
	manager := &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{FieldManager: "test"}
	ctx := testContext(t, expectWidget().Config())
	copied := givenConfigMap.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "999" }).Object()
	if _, err := manager.Manage(ctx, widget.Object(), givenConfigMap.Object(), copied); err == nil || !strings.Contains(err.Error(), "made from scratch") {
		t.Errorf("applying a copy returned %v, want that it must be made from scratch", err)
	}
	root := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{Name: "all", Request: widgetRequest, AggregateObjectManager: manager}
	checkError(t, "without DesiredResource", root.Validate(ctx),
		`AggregateReconciler "all" must define DesiredResource, since its AggregateObjectManager applies all that is desired`)
}

// A nil pointer becomes an error when it is returned as one (invariant L7).
func TestL7AWebhookTakesAnErrorThatIsNil(t *testing.T) {
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
		Config: expectWidget().Config(),
		Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error {
			var none *field.Error
			return none
		}},
	}
	webhook, err := hook.BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	webhook.RecoverPanic = new(false)
	response := webhook.Handle(webhook.WithContextFunc(t.Context(), nil), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"gadget"}}`)},
	}})
	if response.Allowed || response.Result.Message != "the tree returned a *field.Error that is nil" {
		t.Errorf("the answer is %+v, want a denial that names the nil *field.Error", response)
	}
}

// A root without a config says so when it is set up.
func TestSetUpWithoutAConfig(t *testing.T) {
	root := &widgetRoot{Reconciler: configMapChild("a")}
	checkError(t, "", root.SetupWithManager(t.Context(), nil), `ResourceReconciler "WidgetResourceReconciler" must define Config to reconcile`)
}
