package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var namespace = rtesting.NewFixture(&corev1.Namespace{ObjectMeta: childMeta("", "acme")})

func TestNamespace(t *testing.T) {
	present := tenant.With(isTrue(v1alpha1.NamespaceReady, "Ready"))
	named := func(name string) rtesting.Fixture[*v1alpha1.Tenant] {
		return tenant.With(func(t *v1alpha1.Tenant) { t.Name = name })
	}
	reserved := func(name string) *v1alpha1.Tenant {
		return named(name).With(isFalse(v1alpha1.NamespaceReady, "Invalid",
			`metadata.name: Invalid value: "`+name+`": is reserved`)).Object()
	}

	run(t, tests{
		"there is none yet": {
			Resource:       tenant.Object(),
			ExpectResource: present.Object(),
			ExpectCreates:  []object{namespace},
			ExpectEvents:   []rtesting.Event{normal("Created", `Created Namespace "acme"`)},
		},
		"others have labelled it": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{namespace.With(exists, func(n *corev1.Namespace) { n.Labels["theirs"] = "stays" })},
			ExpectResource: present.Object(),
			ExpectApplies:  applies(namespace),
		},
		"it is going": {
			Resource: tenant.Object(),
			GivenObjects: []object{namespace.With(func(n *corev1.Namespace) {
				n.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(2000, 0).Time}
				n.Finalizers = []string{"example.com/going"}
			})},
			ExpectResource: tenant.With(isFalse(v1alpha1.NamespaceReady, "Terminating",
				"Namespace acme: is being deleted, and waits for the finalizer example.com/going")).Object(),
		},
		"it belongs to somebody else": {
			Resource:        tenant.Object(),
			GivenObjects:    []object{namespace.With(foreign[*corev1.Namespace])},
			APIGivenObjects: []object{namespace.With(foreign[*corev1.Namespace])},
			ExpectResource: tenant.With(isFalse(v1alpha1.NamespaceReady, "AlreadyExists",
				`namespaces "acme" already exists`)).Object(),
			ExpectCreates: []object{namespace},
			ExpectTracks:  tracks("", "Namespace", "", "acme"),
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create Namespace "acme": namespaces "acme" already exists`),
			},
		},
		"the name is Kubernetes' own": {
			Resource:       named("kube-system").Object(),
			ExpectResource: reserved("kube-system"),
		},
		"the name is that of the default namespace": {
			Resource:       named("default").Object(),
			ExpectResource: reserved("default"),
		},
		"the name is reserved by an option": {
			Resource:       named("platform").Object(),
			ExpectResource: reserved("platform"),
		},
		"the tenant is being deleted": {
			Resource:      tenant.With(terminating).Object(),
			GivenObjects:  []object{namespace},
			ExpectDeletes: deletes(namespace),
			ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted Namespace "acme"`)},
		},
		"the tenant is being deleted and never had it": {
			Resource:     tenant.With(terminating).Object(),
			GivenObjects: []object{namespace.With(foreign[*corev1.Namespace])},
		},
	}, func() node { return controller.Namespace([]string{"platform"}) })
}
