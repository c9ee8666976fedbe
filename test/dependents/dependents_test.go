package dependents_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/test/dependents"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var service = rtesting.NewFixture(&dependents.Service{
	ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop", UID: "shop-uid", Generation: 1},
	Spec:       dependents.ServiceSpec{Capability: "db"},
})

// says has the conditions, in the order of their types.
func says(conditions ...metav1.Condition) func(*dependents.Service) {
	return func(service *dependents.Service) {
		for _, c := range conditions {
			c.ObservedGeneration = 1
			service.Status.Conditions = append(service.Status.Conditions, c)
		}
		service.Status.ObservedGeneration = 1
	}
}

func is(name, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

func TestService(t *testing.T) {
	scheme, err := dependents.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "web", Name: "shop"}
	owned := func(child client.Object) client.Object { return rtesting.WithController(child, service, scheme) }
	account := owned(&corev1.ServiceAccount{ObjectMeta: meta})
	role := owned(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	}})
	binding := owned(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "shop"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "web", Name: "shop"}},
	})
	secret := owned(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"runtime": []byte("java")}})
	waits := "waiting until Valid is True"
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "web", Name: "shop"}}
	invalid := func(service *dependents.Service) { service.Spec.Port = 80 }
	rtesting.RootTests{
		"a service that is not valid": {
			Request:      request,
			GivenObjects: []client.Object{service.With(invalid)},
			ExpectStatusUpdates: []client.Object{service.With(invalid, says(
				is("AccountReady", "Unknown", "Waiting", waits), is("BindingReady", "Unknown", "Waiting", waits),
				is("CapabilityReady", "Unknown", "Waiting", waits), is("DeploymentReady", "Unknown", "Waiting", waits),
				is("Ready", "False", "Invalid", "Valid: the port 80 is one of the host"),
				is("RoleReady", "Unknown", "Waiting", waits), is("SecretReady", "Unknown", "Waiting", waits),
				is("Valid", "False", "Invalid", "the port 80 is one of the host"),
			))},
		},
		"the capability is missing": {
			Request:       request,
			GivenObjects:  []client.Object{service},
			ExpectCreates: []client.Object{account, role, binding, secret},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("services.example.com", "Capability", "web", "db").By("web", "shop"),
			},
			ExpectEvents: []rtesting.Event{
				rtesting.Normal(service, "Created", `Created ServiceAccount "shop"`),
				rtesting.Normal(service, "Created", `Created Role "shop"`),
				rtesting.Normal(service, "Created", `Created RoleBinding "shop"`),
				rtesting.Normal(service, "Created", `Created Secret "shop"`),
			},
			ExpectStatusUpdates: []client.Object{service.With(says(
				is("AccountReady", "True", "Ready", ""), is("BindingReady", "True", "Ready", ""),
				is("CapabilityReady", "False", "NotFound", "waiting for Capability web/db"),
				is("DeploymentReady", "Unknown", "Waiting", `waiting for "Capability"`),
				is("Ready", "False", "NotFound", "CapabilityReady: waiting for Capability web/db"),
				is("RoleReady", "True", "Ready", ""), is("SecretReady", "True", "Ready", ""),
				is("Valid", "True", "Succeeded", ""),
			))},
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler { return dependents.New(config) })
}
