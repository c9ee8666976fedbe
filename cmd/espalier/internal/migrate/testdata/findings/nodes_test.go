package findings

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"reconciler.io/runtime/reconcilers"
	rtesting "reconciler.io/runtime/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var roots1 = rtesting.ReconcilerTests{
	"nothing": {Request: reconcilers.Request{}},
	"much": {
		Request: reconcilers.Request{}, StatusSubResourceTypes: []client.Object{}, Focus: true,
		AdditionalConfigs: map[string]rtesting.ExpectConfig{"other": {}},
		WithReactors: []rtesting.ReactionFunc{
			rtesting.CalledAtMostTimes("list", "*", 1), rtesting.InduceFailure("list", "ConfigMapList"),
			rtesting.InduceFailure("get", "ConfigMap"),
		},
		WithClientBuilder: func(builder *fake.ClientBuilder) *fake.ClientBuilder { return builder.WithRESTMapper(nil) },
		GivenObjects: []client.Object{&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		}},
		ExpectPatches: []rtesting.PatchRef{{}},
		ExpectDeletes: []rtesting.DeleteRef{{}},
		ExpectEvents:  []rtesting.Event{rtesting.NewEvent(nil, nil, "", "", "")},
		Verify:        func(*testing.T, reconcilers.Result, error) {},
	},
}

var conditions = []metav1.Condition{{Type: "A"}, {Type: "B", ObservedGeneration: 1}}

var webhooks = rtesting.AdmissionWebhookTests{
	"a request": {
		ShouldPanic: true, ExpectedResponse: admission.Response{},
		Prepare: func(
			_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase,
		) (context.Context, error) {
			return ctx, nil
		},
	},
}

func TestText(t *testing.T) {
	if !strings.Contains("", "must implement ChildObjectManager") {
		t.Skip(roots1, conditions, webhooks)
	}
}
