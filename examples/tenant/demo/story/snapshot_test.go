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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
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

// snapshot returns all objects that tenants have, without what differs from one telling to the next: identities and times.
func snapshot(ctx context.Context, t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	seen := map[string]any{}
	for _, obj := range storyObjects(ctx, t, config, tenantKinds) {
		for _, field := range []string{"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", fasterAnnotation)
		if len(obj.GetAnnotations()) == 0 {
			obj.SetAnnotations(nil)
		}
		forgetIdentities(t, obj)
		seen[describe(obj)] = obj.Object
	}
	return seen
}

// forgetIdentities removes UIDs of owners, and from the status all but what conditions say.
func forgetIdentities(t *testing.T, obj unstructured.Unstructured) {
	t.Helper()
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	obj.SetOwnerReferences(owners)
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range conditions {
		for _, field := range []string{"lastTransitionTime", "observedGeneration"} {
			unstructured.RemoveNestedField(condition.(map[string]any), field)
		}
	}
	delete(obj.Object, "status")
	obj.Object["conditions"] = conditions
}

// leftovers names the objects of the story.
func leftovers(ctx context.Context, t *testing.T, config *rest.Config) []string {
	t.Helper()
	var names []string
	for _, obj := range storyObjects(ctx, t, config, slices.Concat(tenantKinds, clusterKinds)) {
		names = append(names, describe(obj))
	}
	return names
}

// storyObjects returns the objects of these kinds that are the story's by their name or namespace.
func storyObjects(ctx context.Context, t *testing.T, config *rest.Config, kinds []schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	var objects []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list); err != nil && !isUnserved(err) {
			t.Fatal(err)
		}
		objects = append(objects, list.Items...)
	}
	return slices.DeleteFunc(objects, func(obj unstructured.Unstructured) bool { return !isOfStory(&obj) })
}

// isUnserved tells whether the definition of a kind is gone.
func isUnserved(err error) bool { return meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil }

func isOfStory(obj metav1.Object) bool {
	for _, name := range []string{obj.GetNamespace(), obj.GetName()} {
		if strings.HasPrefix(name, "demo-") || strings.HasPrefix(name, "tenant-operator") || strings.HasSuffix(name, ".tenancy.example.com") {
			return true
		}
	}
	return false
}

func describe(obj unstructured.Unstructured) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
