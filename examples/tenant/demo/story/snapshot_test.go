package story_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

// tenantKinds are those of which a tenant has objects, or the operator for all of them.
var tenantKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Tenant"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
	corev1.SchemeGroupVersion.WithKind("LimitRange"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
}

// clusterKinds are those of which the story itself makes more objects.
var clusterKinds = []schema.GroupVersionKind{
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
}

// snapshot returns all objects that tenants have, without what differs from one telling to the next.
func snapshot(ctx context.Context, t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	return storytellingtest.Snapshot(ctx, t, config, isOfStory, tenantKinds...)
}

// leftovers names the objects of the story.
func leftovers(ctx context.Context, t *testing.T, config *rest.Config) []string {
	t.Helper()
	return storytellingtest.Leftovers(ctx, t, config, isOfStory, slices.Concat(tenantKinds, clusterKinds)...)
}

// isOfStory tells by the name or namespace whether an object is the story's.
func isOfStory(obj metav1.Object) bool {
	for _, name := range []string{obj.GetNamespace(), obj.GetName()} {
		if strings.HasPrefix(name, "demo-") || strings.HasPrefix(name, "tenant-operator") || strings.HasSuffix(name, ".tenancy.example.com") {
			return true
		}
	}
	return false
}
