package testing_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A current observed generation is met by one that is expected, and by none.
func TestExpectedObservedGeneration(t *testing.T) {
	t.Parallel()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	observed := deployment.DeepCopy()
	observed.Status.ObservedGeneration = 1
	rtesting.NodeTests[*appsv1.Deployment]{
		"set":     {Resource: deployment, ExpectResource: observed},
		"not set": {Resource: deployment, ExpectResource: deployment},
	}.RunNode(t, scheme, observes)
}

// An owner reference of an apply is expected without a UID if the member is missing, too.
func TestExpectedOwnerOfAnApply(t *testing.T) {
	t.Parallel()
	owner := applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName("settings")
	applied := func(owner *applymetav1.OwnerReferenceApplyConfiguration) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("one", "default").WithOwnerReferences(owner)
	}
	runNodes(t, cmNodes{"row": {
		Resource:      settings.Object(),
		ExpectApplies: []rtesting.ApplyRef{{Kind: "ConfigMap", Namespace: "default", Name: "one", ApplyConfiguration: applied(owner)}},
		Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
			sent := *owner
			return reconcilers.RetrieveConfigOrDie(ctx).Apply(ctx, applied(sent.WithUID(cm.UID)),
				client.FieldOwner("me"), client.ForceOwnership)
		}),
	}})
}
