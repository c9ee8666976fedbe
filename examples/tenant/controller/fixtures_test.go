package controller_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// Short names for what all tables are made of.
type (
	object = client.Object
	tests  = rtesting.NodeTests[*v1alpha1.Tenant]
	node   = reconcilers.SubReconciler[*v1alpha1.Tenant]
)

var scheme = mustScheme()

func mustScheme() *runtime.Scheme {
	s, err := controller.NewScheme()
	if err != nil {
		panic(err)
	}
	return s
}

// run runs a table with the node that make returns, anew for each case.
func run(t *testing.T, table tests, make func() node) {
	t.Helper()
	table.RunNode(t, scheme, make)
}

var tenant = rtesting.NewFixture(&v1alpha1.Tenant{
	ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme-uid", Generation: 1},
	Spec: v1alpha1.TenantSpec{
		Owner:       "ann@example.com",
		DefaultsRef: v1alpha1.DefaultsRef{Namespace: "platform", Name: "defaults"},
	},
})

var defaults = rtesting.NewFixture(&corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "defaults"},
	Data: map[string]string{
		"quota.pods":     "20",
		"quota.memory":   "8Gi",
		"limits.cpu":     "500m",
		"role.developer": "edit",
		"role.guest":     "view",
	},
})

// parsed is the stash with the defaults, changed as given: an empty value removes a key.
func parsed(changes ...string) map[stash.Key]any {
	data := defaults.Object().Data
	for i := 0; i < len(changes); i += 2 {
		if data[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(data, changes[i])
		}
	}
	value, problems := controller.ParseDefaults(data)
	if len(problems) > 0 {
		panic(problems.ToAggregate())
	}
	return map[stash.Key]any{controller.DefaultsKey: value}
}

// isTrue, isFalse and isUnknown make a condition of the tenant say so.
func isTrue(condition, reason string) func(*v1alpha1.Tenant) {
	return is(condition, metav1.ConditionTrue, reason, "")
}

func isFalse(condition, reason, message string) func(*v1alpha1.Tenant) {
	return is(condition, metav1.ConditionFalse, reason, message)
}

func isUnknown(condition, reason, message string) func(*v1alpha1.Tenant) {
	return is(condition, metav1.ConditionUnknown, reason, message)
}

func is(condition string, status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) {
		reconcilers.SetCondition(context.Background(), t, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message,
		})
	}
}

var terminating = rtesting.Terminating[*v1alpha1.Tenant](finalizer)

const finalizer = "tenancy.example.com/directory"

// childMeta is the metadata of an object that the tenant owns.
func childMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		Labels:    map[string]string{"tenancy.example.com/tenant": "acme"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "tenancy.example.com/v1alpha1", Kind: "Tenant", Name: "acme", UID: "acme-uid",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// exists makes an object one that is in the cluster.
func exists[T object](obj T) { obj.SetUID("child-uid") }

// applies is that the operator applies an object that exists.
func applies(fixture object) []rtesting.ApplyRef {
	obj := fixture.DeepCopyObject().(object)
	exists(obj)
	return []rtesting.ApplyRef{{
		ApplyConfiguration: rtesting.Applied(obj), FieldOwner: "tenant-controller", Force: ptr.To(true),
	}}
}

// normal and warning are events about the tenant.
func normal(reason, message string) rtesting.Event { return rtesting.Normal(tenant, reason, message) }

func warning(reason, message string) rtesting.Event { return rtesting.Warning(tenant, reason, message) }

// tracks is that the tenant wants to hear about an object.
func tracks(group, kind, namespace, name string) []rtesting.TrackRequest {
	return []rtesting.TrackRequest{rtesting.CreateTrackRequest(group, kind, namespace, name).By("", "acme")}
}

func deletes(obj object) []rtesting.DeleteRef {
	return []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(obj, scheme)}
}

// outcome is a node that does nothing, with that outcome.
func outcome(result reconcilers.Result, err error) node {
	return &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
		SyncWithResult: func(context.Context, *v1alpha1.Tenant) (reconcilers.Result, error) { return result, err },
	}
}
