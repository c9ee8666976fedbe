package reconcilers

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setController makes owner the controller of child, unless child has a controller already.
//
// The rules are those of Kubernetes garbage collection: an owner is cluster-scoped or in the namespace of the child.
func setController(ctx context.Context, config Config, owner, child client.Object) error {
	ref, err := controllerRef(ctx, config, owner)
	if err != nil || metav1.GetControllerOfNoCopy(child) != nil {
		return err
	}
	from, to := owner.GetNamespace(), child.GetNamespace()
	switch {
	case from == "" || from == to:
	case to == "":
		return fmt.Errorf("cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s", from)
	default:
		return fmt.Errorf("cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s",
			from, to)
	}
	isOwner := func(known metav1.OwnerReference) bool { return known.UID == ref.UID }
	others := slices.DeleteFunc(slices.Clone(child.GetOwnerReferences()), isOwner)
	child.SetOwnerReferences(append(others, ref))
	return nil
}

// ownerIdentity is what an owner reference is made of.
type ownerIdentity struct {
	object client.Object
	uid    types.UID
	reader client.Client
}

// controllerRef returns a reference to owner as controller, or an error if the kind of owner is not known. Below a root
// the reference is made once in a request.
func controllerRef(ctx context.Context, config Config, owner client.Object) (metav1.OwnerReference, error) {
	s := contextOf(ctx)
	owner, _ = s.behindCast(owner)
	request := s.state
	if request == nil || !s.comparable {
		request = &requestState{}
	}
	identity := ownerIdentity{object: owner, uid: owner.GetUID(), reader: config.Client}
	request.mu.Lock()
	defer request.mu.Unlock()
	if request.owner != identity {
		kind, err := config.GroupVersionKindFor(owner)
		if err != nil {
			return metav1.OwnerReference{}, err
		}
		request.owner, request.ownerRef = identity, *metav1.NewControllerRef(owner, kind)
	}
	return request.ownerRef, nil
}
