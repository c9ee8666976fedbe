package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setController makes owner the controller of child by ref, which refers to owner. A controller that child names already is
// respected as given.
//
// The rules are those of Kubernetes garbage collection: an owner is cluster-scoped or in the namespace of the child.
func setController(owner client.Object, ref metav1.OwnerReference, child client.Object) error {
	if metav1.GetControllerOfNoCopy(child) != nil {
		return nil
	}
	if err := validateOwner(owner.GetNamespace(), child.GetNamespace()); err != nil {
		return err
	}
	refs := child.GetOwnerReferences()
	if slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
		refs = slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
	}
	child.SetOwnerReferences(append(slices.Clip(refs), ref))
	return nil
}

// ownerIdentity is what an owner reference is made of.
type ownerIdentity struct {
	uid    types.UID
	object reflect.Type
	reader client.Client
}

// controllerRef returns a reference to owner as controller, or an error if the kind of owner is not known. Below a root it is
// made once in a request.
func controllerRef(ctx context.Context, config Config, owner client.Object) (metav1.OwnerReference, error) {
	owner, _ = resourceBehindCast(ctx, owner)
	p := contextOf(ctx).state
	if p == nil || !contextOf(ctx).comparable {
		return newControllerRef(config, owner)
	}
	identity := ownerIdentity{uid: owner.GetUID(), object: reflect.TypeOf(owner), reader: config.Client}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != identity {
		ref, err := newControllerRef(config, owner)
		if err != nil {
			return metav1.OwnerReference{}, err
		}
		p.owner, p.ownerRef = identity, ref
	}
	return p.ownerRef, nil
}

func newControllerRef(config Config, owner client.Object) (metav1.OwnerReference, error) {
	kind, err := config.GroupVersionKindFor(owner)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return *metav1.NewControllerRef(owner, kind), nil
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
