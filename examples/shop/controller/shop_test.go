package controller_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestSettings(t *testing.T) {
	withSettings := func(s *v1.Shop) { s.Spec.Settings = "settings" }
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "settings"}}
	tracked := []rtesting.TrackRequest{rtesting.CreateTrackRequest("", "ConfigMap", "market", "settings").By("market", "web")}
	run(t, tests{
		"none": {
			Resource:       shop.Object(),
			ExpectResource: shop.With(is(v1.SettingsFound, metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
		"there": {
			Resource:       shop.With(withSettings).Object(),
			GivenObjects:   []object{settings},
			ExpectTracks:   tracked,
			ExpectResource: shop.With(withSettings, is(v1.SettingsFound, metav1.ConditionTrue, "Found", "")).Object(),
		},
		"missing: the nodes after it wait": {
			Resource:     shop.With(withSettings).Object(),
			ExpectTracks: tracked,
			ExpectResource: shop.With(withSettings, is(v1.SettingsFound, metav1.ConditionFalse, "NotFound",
				"ConfigMap market/settings does not exist")).Object(),
			ExpectedErr: reconcilers.ErrHaltSubReconcilers,
		},
	}, controller.Settings)
}

const finalizer = "shop.example.com/registration"

// patchesFinalizers is the request that makes what is given the finalizers of the shop.
func patchesFinalizers(finalizers string) []rtesting.PatchRef {
	return []rtesting.PatchRef{{
		Group: "shop.example.com", Kind: "Shop", Namespace: "market", Name: "web",
		PatchType: types.MergePatchType,
		Patch:     []byte(`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"999"}}`),
	}}
}

func TestRegistration(t *testing.T) {
	guarded := func(s *v1.Shop) { s.Finalizers = []string{finalizer} }
	free := func(s *v1.Shop) { s.Finalizers = nil }
	patched := func(s *v1.Shop) { s.ResourceVersion = "1000" }
	registered := is(v1.Registered, metav1.ConditionTrue, "Succeeded", "")

	t.Run("the registry works", func(t *testing.T) {
		run(t, tests{
			"the finalizer is there first": {
				Resource:       shop.With(withHost).Object(),
				ExpectPatches:  patchesFinalizers(`["shop.example.com/registration"]`),
				ExpectEvents:   normal("FinalizerPatched", `Patched finalizer "shop.example.com/registration"`),
				ExpectResource: shop.With(withHost, guarded, patched, registered).Object(),
			},
			"nothing to do": {
				Resource:       shop.With(withHost, guarded, registered).Object(),
				ExpectResource: shop.With(withHost, guarded, registered).Object(),
			},
			"the end": {
				Resource:       shop.With(withHost, terminating).Object(),
				ExpectPatches:  patchesFinalizers("null"),
				ExpectEvents:   normal("FinalizerPatched", `Patched finalizer "shop.example.com/registration"`),
				ExpectResource: shop.With(withHost, terminating, free).Object(),
			},
		}, registrationIn(&registry.Memory{}))
	})
	t.Run("the host is taken", func(t *testing.T) {
		hosts := &registry.Memory{}
		if err := hosts.Register(t.Context(), "market/other", "web.example.com"); err != nil {
			t.Fatal(err)
		}
		run(t, tests{
			"ask again": {
				Resource: shop.With(withHost, guarded).Object(),
				ExpectResource: shop.With(withHost, guarded, is(v1.Registered, metav1.ConditionFalse, "HostTaken",
					"the host web.example.com belongs to market/other")).Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			},
		}, registrationIn(hosts))
	})
	t.Run("the registry is down", func(t *testing.T) {
		hosts := &registry.Memory{}
		hosts.Fail(errors.New("the registry is down"))
		run(t, tests{
			"at the beginning": {
				Resource: shop.With(withHost, guarded).Object(),
				ExpectResource: shop.With(withHost, guarded, is(v1.Registered, metav1.ConditionFalse, "Failed",
					"unable to register the shop: the registry is down")).Object(),
				ShouldErr: true,
			},
			"in the end": {
				Resource: shop.With(withHost, terminating).Object(),
				ExpectResource: shop.With(withHost, terminating, is(v1.Registered, metav1.ConditionFalse, "Failed",
					"unable to unregister the shop: the registry is down")).Object(),
				ShouldErr: true,
			},
		}, registrationIn(hosts))
	})
}

func registrationIn(hosts registry.Registry) func() node {
	return func() node { return controller.Registration(hosts, time.Minute) }
}
