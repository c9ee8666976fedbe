package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

func requests(names ...types.NamespacedName) []reconcilers.Request {
	requests := make([]reconcilers.Request, len(names))
	for i, name := range names {
		requests[i].NamespacedName = name
	}
	return requests
}

var (
	acme      = types.NamespacedName{Name: "acme"}
	globex    = types.NamespacedName{Name: "globex"}
	listOfAll = types.NamespacedName{Namespace: "platform", Name: "tenants"}
	// watched is each type once, however many nodes deal with it.
	watched = []object{
		&v1alpha1.Tenant{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{},
		&rbacv1.RoleBinding{}, &networkingv1.NetworkPolicy{},
	}
)

// tracksDefaults expects that a ConfigMap of that name is tracked in the namespace of defaults.
func tracksDefaults(name string, by types.NamespacedName) rtesting.TrackRequest {
	return rtesting.CreateTrackRequest("", "ConfigMap", "platform", name).By(by.Namespace, by.Name)
}

func TestSetup(t *testing.T) {
	others := defaults.With(func(c *corev1.ConfigMap) { c.Name = "others" })
	options := controller.Options{Directory: &directory.Memory{}, RegistryNamespace: "platform"}

	table := rtesting.SetupTests{
		"tenants": {
			Metadata:      map[string]any{"setup": func(c reconcilers.Config) rtesting.Setup { return controller.New(c, options) }},
			GivenTracks:   []rtesting.TrackRequest{tracksDefaults("defaults", acme), tracksDefaults("defaults", globex), tracksDefaults("others", globex)},
			ExpectWatches: watched,
			Events: []rtesting.SetupEvent{
				{Created: tenant, ExpectRequests: requests(acme)},
				{Created: defaults, ExpectRequests: requests(acme, globex)},
				{Updated: defaults, ExpectRequests: requests(acme, globex)},
				{Deleted: others, ExpectRequests: requests(globex)},
				{Name: "nobody asked for the registry", Updated: registry},
				{Updated: namespace, ExpectRequests: requests(acme)},
				{Updated: quota, ExpectRequests: requests(acme)},
				{Updated: limits, ExpectRequests: requests(acme)},
				{Deleted: policy, ExpectRequests: requests(acme)},
				{Deleted: annEdits, ExpectRequests: requests(acme)},
				{Name: "somebody else's", Updated: quota.With(foreign[*corev1.ResourceQuota])},
			},
		},
		"tenants, with the defaults on a hub": {
			Metadata: map[string]any{"setup": func(c reconcilers.Config) rtesting.Setup {
				return rtesting.SetupFunc(func(ctx context.Context, mgr reconcilers.Manager) error {
					// One cluster plays both parts. What is tracked there is tracked on the hub.
					hub := options
					hub.DefaultsCluster = mgr
					c.Tracker = tracker.New(scheme, time.Hour)
					for name, by := range map[string]tracker.Tracker{"others": tracker.InCluster(c.Tracker, mgr), "defaults": c.Tracker} {
						if err := by.TrackReference(tracksDefaults(name, acme).TrackedReference, tenant.Object()); err != nil {
							return err
						}
					}
					return controller.New(c, hub).SetupWithManager(ctx, mgr)
				})
			}},
			ExpectWatches: watched,
			Events: []rtesting.SetupEvent{
				{Updated: others, ExpectRequests: requests(acme)},
				{Name: "of that name, but not on the hub", Updated: defaults},
			},
		},
		"registry": {
			Metadata: map[string]any{"setup": func(c reconcilers.Config) rtesting.Setup { return controller.NewRegistry(c, options) }},
			GivenTracks: []rtesting.TrackRequest{{
				Tracker:          listOfAll,
				TrackedReference: tracker.Reference{APIGroup: v1alpha1.GroupVersion.Group, Kind: "Tenant", Selector: labels.Everything()},
			}},
			ExpectWatches:  []object{&corev1.ConfigMap{}, &v1alpha1.Tenant{}},
			ExpectRequests: requests(listOfAll),
			Events: []rtesting.SetupEvent{
				{Created: tenant, ExpectRequests: requests(listOfAll)},
				{Updated: tenant, ExpectRequests: requests(listOfAll)},
				{Deleted: tenant, ExpectRequests: requests(listOfAll)},
				{Deleted: registry, ExpectRequests: requests(listOfAll)},
				{Name: "another ConfigMap", Updated: defaults},
			},
		},
	}
	for name, tc := range table {
		tc.GivenAPIResources = []*metav1.APIResourceList{{
			GroupVersion: v1alpha1.GroupVersion.String(), APIResources: []metav1.APIResource{{Name: "tenants", Kind: "Tenant"}},
		}}
		table[name] = tc
	}
	table.Run(t, scheme, func(_ *testing.T, tc *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return tc.Metadata["setup"].(func(reconcilers.Config) rtesting.Setup)(c)
	})
}
