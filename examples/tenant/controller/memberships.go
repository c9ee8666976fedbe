package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// membership is what the directory has to learn about one member.
type membership struct {
	Member directory.Member
	// Left is true for a former member.
	Left bool
}

// Memberships has the directory know who the members of a listed tenant are. It runs once for each of those who came or
// left, and so not at all if there are none.
func Memberships(dir directory.Directory) node {
	return &reconcilers.ForEach[*v1alpha1.Tenant, membership]{
		Name: "Memberships",
		Items: func(ctx context.Context, tenant *v1alpha1.Tenant) ([]membership, error) {
			known, err := dir.Members(ctx, tenant.Name, string(tenant.UID))
			if err != nil {
				return nil, fmt.Errorf("unable to ask for the members of tenant %s: %w", tenant.Name, err)
			}
			return membershipsToChange(tenant, known), nil
		},
		Reconciler: Membership(dir),
	}
}

// Membership lets one member join the tenant in the directory, or leave it: the one that [Memberships] is at.
func Membership(dir directory.Directory) node {
	return &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
		Name: "Membership",
		Sync: func(ctx context.Context, tenant *v1alpha1.Tenant) error {
			at := reconcilers.CursorStasher[membership]().RetrieveOrDie(ctx)
			change, verb := dir.Join, "join"
			if at.Item.Left {
				change, verb = dir.Leave, "leave"
			}
			if err := change(ctx, tenant.Name, string(tenant.UID), at.Item.Member); err != nil {
				return fmt.Errorf("unable to have member %s %s tenant %s, which is change %d of %d: %w",
					at.Item.Member.Name, verb, tenant.Name, at.Index+1, at.Length, err)
			}
			return nil
		},
	}
}

// membershipsToChange compares who is a member with who is known as one: first come those who join, as the tenant has
// them, then those who leave, as the directory has them.
func membershipsToChange(tenant *v1alpha1.Tenant, known []directory.Member) []membership {
	var changes []membership
	members := make([]directory.Member, 0, len(tenant.Spec.Members))
	for _, member := range tenant.Spec.Members {
		members = append(members, directory.Member{Kind: member.Kind, Name: member.Name})
	}
	for _, member := range members {
		if !slices.Contains(known, member) {
			changes = append(changes, membership{Member: member})
		}
	}
	for _, member := range known {
		if !slices.Contains(members, member) {
			changes = append(changes, membership{Member: member, Left: true})
		}
	}
	return changes
}
