package write

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version is an object as it was read. An empty field stands for any value.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf returns the version of an object.
func VersionOf(obj metav1.Object) Version {
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// preconditions returns the version as the options of a delete have it, and whether it says anything.
func (v *Version) preconditions() (only client.Preconditions, some bool) {
	if v.UID != "" {
		only.UID = &v.UID
	}
	if v.ResourceVersion != "" {
		only.ResourceVersion = &v.ResourceVersion
	}
	return only, only != client.Preconditions{}
}

// setOn makes body be refused for another version.
func (v Version) setOn(body metav1.Object) {
	if v.UID != "" {
		body.SetUID(v.UID)
	}
	if v.ResourceVersion != "" {
		body.SetResourceVersion(v.ResourceVersion)
	}
}

// Delete deletes the object that obj names, if it is of that version. The object may remain until its finalizers are
// gone. An empty propagation stands for Background: the default of the API server differs from type to type, and Jobs
// would leave their Pods behind.
func Delete(
	ctx context.Context, c client.Writer, obj client.Object, only Version, propagation metav1.DeletionPropagation,
) error {
	if propagation == "" {
		propagation = metav1.DeletePropagationBackground
	}
	if preconditions, some := only.preconditions(); some {
		return c.Delete(ctx, obj, client.PropagationPolicy(propagation), preconditions)
	}
	return c.Delete(ctx, obj, client.PropagationPolicy(propagation))
}
