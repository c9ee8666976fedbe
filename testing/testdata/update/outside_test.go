package shop_test

import (
	"context"
	"testing"

	"example.com/shop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// opens writes what only the API server and the types of other packages can say.
func opens(c reconcilers.Config) *reconcilers.ResourceReconciler[*shop.Shop] {
	return &reconcilers.ResourceReconciler[*shop.Shop]{
		Config: c,
		Reconciler: &reconcilers.SyncReconciler[*shop.Shop]{Sync: func(ctx context.Context, s *shop.Shop) error {
			s.Status.Seen = &shop.Visit{By: "bob"}
			return nil
		}},
	}
}

// founder makes the requested shop.
type founder struct{ reconcilers.Config }

func (f founder) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s := &shop.Shop{}
	err := f.Get(ctx, request.NamespacedName, s)
	if apierrors.IsNotFound(err) {
		s.Namespace, s.Name = request.Namespace, request.Name
		err = f.Create(ctx, s)
	}
	return reconcile.Result{}, err
}

func TestRoot(t *testing.T) {
	corner := &shop.Shop{}
	corner.Namespace, corner.Name = "default", "corner"
	rtesting.ReconcilerTests{
		"the whole": {
			Request:                reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "corner"}},
			GivenObjects:           []client.Object{corner},
			StatusSubResourceTypes: []client.Object{corner},
		},
	}.Run(t, shop.NewScheme(), func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return opens(c)
	})
	rtesting.ReconcilerTests{
		"the first of its name": {
			Request:      reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "market"}},
			GivenObjects: []client.Object{corner},
		},
	}.Run(t, shop.NewScheme(), func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return founder{c}
	})
	rtesting.SetupTests{
		"watches": {},
	}.Run(t, shop.NewScheme(), func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return opens(c)
	})
}

func TestWebhook(t *testing.T) {
	rtesting.AdmissionWebhookTests{
		"refuses": {Request: &admission.Request{}},
	}.RunWithContext(t, shop.NewScheme(), func(
		*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
	) (*admission.Webhook, error) {
		return &admission.Webhook{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response { return admission.Denied("closed") },
		)}, nil
	})
}
