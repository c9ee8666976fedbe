package server

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// protectionPlugin is the name of a plug-in of a kube-apiserver.
const protectionPlugin = "StorageObjectInUseProtection"

// protectingFinalizers keep claims and volumes from deletion while they are in use, see "Storage Object in Use
// Protection" in the Kubernetes documentation.
var protectingFinalizers = map[schema.GroupResource]string{
	{Resource: "persistentvolumeclaims"}: "kubernetes.io/pvc-protection",
	{Resource: "persistentvolumes"}:      "kubernetes.io/pv-protection",
}

// protection adds the finalizers to objects that are created. Whoever looks after the objects removes them.
type protection struct{ *admission.Handler }

var _ admission.MutationInterface = protection{}

func newProtection() protection { return protection{admission.NewHandler(admission.Create)} }

// Admit implements [admission.MutationInterface].
func (protection) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	finalizer, ok := protectingFinalizers[a.GetResource().GroupResource()]
	obj, isObject := a.GetObject().(client.Object)
	if ok && isObject && a.GetSubresource() == "" && !slices.Contains(obj.GetFinalizers(), finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
	}
	return nil
}
