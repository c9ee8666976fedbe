package testing_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/fake"
)

// Only an API server, and not the fake client of controller-runtime, refuses to create an object in a namespace that is
// not there.
var (
	homeless  = settings.With(func(c *corev1.ConfigMap) { c.Namespace = "missing" })
	errNoHome = errors.New(`namespaces "missing" not found`)
)

func createHomeless(ctx context.Context, c client.Client) error {
	return c.Create(ctx, homeless.Object())
}

func TestRowsUseFake(t *testing.T) {
	creates := does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		return createHomeless(ctx, reconcilers.RetrieveConfigOrDie(ctx))
	})
	expected := []client.Object{homeless}
	runNode(t, cmTests{
		"not": {Resource: settings.Object(), Metadata: creates, ExpectCreates: expected},
		"a row of a node": {
			Resource: settings.Object(), Metadata: creates, ExpectCreates: expected, UseFake: true, ExpectedErr: errNoHome,
		},
		"a row with a builder": {
			Resource: settings.Object(), Metadata: creates, ExpectCreates: expected, UseFake: true,
			WithClientBuilder: func(b *controllerfake.ClientBuilder) *controllerfake.ClientBuilder { return b },
		},
	})

	made := 0
	rtesting.ReconcilerTests{
		"not":             {Request: request, ExpectCreates: expected},
		"a row of a root": {Request: request, ExpectCreates: expected, UseFake: true, ExpectedErr: errNoHome},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		made++
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, createHomeless(ctx, c)
		})
	})
	if made != 2 {
		t.Errorf("the factory of two rows was called %d times, want 2: they are not replayed", made)
	}

	denies := answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
		if err := createHomeless(ctx, c); err != nil {
			return admission.Denied(err.Error())
		}
		return admission.Allowed("")
	})
	webhookTests{
		"not": {Request: asked(), Metadata: denies, ExpectCreates: expected, ExpectedResponse: allowed},
		"a row of a webhook": {
			Request: asked(), Metadata: denies, ExpectCreates: expected, UseFake: true,
			ExpectedResponse: admission.Denied(errNoHome.Error()),
		},
	}.RunWithContext(t, scheme, newWebhook)
}

func TestConfigsByHandUseFake(t *testing.T) {
	orphan := settings.With(func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}
	})
	expect := &rtesting.ExpectConfig{
		Scheme: scheme, UseFake: true, GivenObjects: []client.Object{orphan},
		APIGivenObjects: []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Name = "other" })},
		ExpectCreates:   []client.Object{homeless},
	}
	c := expect.Config()
	if err := createHomeless(t.Context(), c); err == nil || err.Error() != errNoHome.Error() {
		t.Errorf("a create answers %v, want %v", err, errNoHome)
	}
	for _, reader := range []client.Reader{c.Client, c.APIReader} {
		list := &corev1.ConfigMapList{}
		if err := reader.List(t.Context(), list, client.InNamespace("default")); err != nil || len(list.Items) != 2 {
			t.Errorf("%T lists %d objects, %v, want both that are given", reader, len(list.Items), err)
		}
	}
	if !fake.CollectGarbage(c.Client) {
		t.Error("nothing was collected, want the object whose owner is gone")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan.Object()); !apierrors.IsNotFound(err) {
		t.Errorf("the object whose owner is gone: %v, want not found", err)
	}
	if config := (&rtesting.ExpectConfig{Scheme: scheme}).Config(); createHomeless(t.Context(), config) != nil {
		t.Error("a create without UseFake fails, want what the fake client of controller-runtime does")
	}
	expect.AssertExpectations(t)
}

// Objects that are given later are where the client of the user's builder reads.
func TestTrackerOfTheBuilder(t *testing.T) {
	other := clientgotesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	expect := newExpectConfig()
	expect.WithClientBuilder = func(b *controllerfake.ClientBuilder) *controllerfake.ClientBuilder {
		return b.WithObjectTracker(other)
	}
	expect.GivenObjects, expect.APIGivenObjects = nil, nil
	c := expect.Config()
	c.Client.(rtesting.TestClient).AddGiven(settings)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(settings), &corev1.ConfigMap{}); err != nil {
		t.Errorf("the client reads %v, want the object that was given", err)
	}
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	if _, err := other.Get(resource, "default", "settings"); err != nil {
		t.Errorf("the tracker of the builder has %v, want the object that was given", err)
	}
}
