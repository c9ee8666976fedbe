package memserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepUID refuses an update of an object that has another UID than the stored one, and lets no update lose the UID.
func keepUID(gvr schema.GroupVersionResource, old, next client.Object) error {
	stored, given := old.GetUID(), next.GetUID()
	if given == "" {
		next.SetUID(stored)
		return nil
	}
	if stored != "" && stored != given {
		return conflict(gvr, old, "Precondition failed: UID in precondition: %s, UID in object meta: %s", given, stored)
	}
	return nil
}

// checkPreconditions refuses a delete with the UID or the version of another object than the stored one.
func checkPreconditions(gvr schema.GroupVersionResource, old client.Object, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	if uid := preconditions.UID; uid != nil && *uid != old.GetUID() {
		return conflict(gvr, old, "the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *uid, old.GetUID())
	}
	if rv := preconditions.ResourceVersion; rv != nil && *rv != old.GetResourceVersion() {
		return conflict(gvr, old, "the ResourceVersion in the precondition (%s) does not match the ResourceVersion in "+
			"record (%s). The object might have been modified", *rv, old.GetResourceVersion())
	}
	return nil
}

func conflict(gvr schema.GroupVersionResource, old client.Object, format string, args ...any) error {
	return apierrors.NewConflict(gvr.GroupResource(), old.GetName(), fmt.Errorf(format, args...))
}
