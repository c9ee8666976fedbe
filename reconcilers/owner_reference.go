package reconcilers

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setController makes owner, which is of kind gvk, the controller of child. A controller that child names already is
// respected as given.
//
// The rules are those of Kubernetes garbage collection: an owner is cluster-scoped or in the namespace of the child.
func setController(owner client.Object, gvk schema.GroupVersionKind, child client.Object) error {
	if metav1.GetControllerOfNoCopy(child) != nil {
		return nil
	}
	if err := validateOwner(owner.GetNamespace(), child.GetNamespace()); err != nil {
		return err
	}
	// One allocation for both flags; metav1.NewControllerRef makes two.
	flags := &[2]bool{true, true}
	ref := metav1.OwnerReference{
		APIVersion:         gvk.GroupVersion().String(),
		Kind:               gvk.Kind,
		Name:               owner.GetName(),
		UID:                owner.GetUID(),
		Controller:         &flags[0],
		BlockOwnerDeletion: &flags[1],
	}
	refs := child.GetOwnerReferences()
	known := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool {
		return r.UID == ref.UID && r.Kind == ref.Kind && r.Name == ref.Name
	})
	if known >= 0 {
		refs = slices.Clone(refs)
		refs[known] = ref
	} else {
		refs = append(slices.Clip(refs), ref)
	}
	child.SetOwnerReferences(refs)
	return nil
}

func validateOwner(ownerNamespace, namespace string) error {
	switch {
	case ownerNamespace == "" || ownerNamespace == namespace:
		return nil
	case namespace == "":
		return fmt.Errorf("cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s", ownerNamespace)
	default:
		return fmt.Errorf("cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s", ownerNamespace, namespace)
	}
}
