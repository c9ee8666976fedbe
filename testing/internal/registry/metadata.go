package registry

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameRule says what is wrong with a name, or with a prefix of one.
type nameRule = apivalidation.ValidateNameFunc

// The rules that Kubernetes has for names, besides [subdomainName] and [labelName], see "Object Names and IDs" in its
// documentation.
var (
	segmentName nameRule = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	addressName nameRule = func(name string, _ bool) []string {
		if addr, err := netip.ParseAddr(name); err != nil || addr.String() != name {
			return []string{"must be a valid IP address in canonical form"}
		}
		return nil
	}
)

var metadata = field.NewPath("metadata")

// keepMetadata keeps the metadata of old, which an update of the status must not change.
func keepMetadata(obj, old client.Object) {
	obj.SetGenerateName(old.GetGenerateName())
	obj.SetGeneration(old.GetGeneration())
	obj.SetLabels(old.GetLabels())
	obj.SetAnnotations(old.GetAnnotations())
	obj.SetFinalizers(old.GetFinalizers())
	obj.SetOwnerReferences(old.GetOwnerReferences())
}

func validateMetadata(obj client.Object, scope Scope, name nameRule) field.ErrorList {
	return apivalidation.ValidateObjectMetaAccessor(withoutUsual(obj), scope == Namespaced, name, metadata)
}

// validateMetadataUpdate accepts what was wrong with old already.
func validateMetadataUpdate(obj, old client.Object, scope Scope, name nameRule) field.ErrorList {
	errs := validateMetadata(obj, scope, name)
	if len(errs) > 0 {
		errs = ratchet(errs, validateMetadata(old, scope, name))
	}
	return append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(withoutUsual(obj), old, metadata)...)
}

// validateFinalizers requires a domain in the name of a finalizer, but for those of Kubernetes itself. It concerns the
// built-in kinds, except some.
func validateFinalizers(obj client.Object, kind schema.GroupKind) field.ErrorList {
	if anyFinalizer[kind] {
		return nil
	}
	var errs field.ErrorList
	for i, name := range obj.GetFinalizers() {
		errs = append(errs, validateFinalizer(name, metadata.Child("finalizers").Index(i))...)
	}
	return errs
}

func validateFinalizer(name string, at *field.Path) field.ErrorList {
	if strings.Contains(name, "/") || name == string(corev1.FinalizerKubernetes) ||
		name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name,
		"name is neither a standard finalizer name nor is it fully qualified")}
}
