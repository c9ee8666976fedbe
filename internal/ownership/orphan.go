package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationOrphan is the key of an annotation of a terminating resource: what depends on it stays. Its value is the
// UID of the resource, so a copy of the resource does not have it by accident.
const AnnotationOrphan = "espalier.dev/orphan"

// Orphans reports whether a resource is being deleted without what depends on it, as with
// "kubectl delete --cascade=orphan". The garbage collector removes the finalizer that says so once it has removed the
// owner references; the annotation says it from then on.
func Orphans(resource metav1.Object) bool {
	return resource.GetDeletionTimestamp() != nil && (WantsOrphans(resource) || IsOrphanNoted(resource))
}

// WantsOrphans reports whether the garbage collector has yet to release what depends on a terminating resource.
func WantsOrphans(resource metav1.Object) bool {
	return resource.GetDeletionTimestamp() != nil &&
		slices.Contains(resource.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// IsOrphanNoted reports whether a resource has the annotation with its own UID.
func IsOrphanNoted(resource metav1.Object) bool {
	noted := resource.GetAnnotations()[AnnotationOrphan]
	return noted != "" && noted == string(resource.GetUID())
}
