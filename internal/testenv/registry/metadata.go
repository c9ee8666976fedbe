package registry

import (
	"net/netip"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameRule says what is wrong with a name, or with a prefix of one.
type nameRule = apivalidation.ValidateNameFunc

// The rules that Kubernetes has for names, see "Object Names and IDs" in its documentation.
var (
	subdomainName nameRule = apivalidation.NameIsDNSSubdomain
	labelName     nameRule = apivalidation.NameIsDNSLabel
	serviceName   nameRule = apivalidation.NameIsDNSLabel
	segmentName   nameRule = path.ValidatePathSegmentName
	addressName   nameRule = func(name string, _ bool) []string {
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
	namespaced := scope == Namespaced || scope == AnyScope && obj.GetNamespace() != ""
	return apivalidation.ValidateObjectMetaAccessor(obj, namespaced, name, metadata)
}

func validateMetadataUpdate(obj, old client.Object, scope Scope, name nameRule) field.ErrorList {
	errs := validateMetadata(obj, scope, name)
	return append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(obj, old, metadata)...)
}
