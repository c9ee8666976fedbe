package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// takenInterval is how often a name is asked for that another tenant has: the directory does not report when it is
// free.
const takenInterval = time.Minute

// Registration lists the tenant in the directory once it has its namespace.
func Registration(dir directory.Directory) node {
	return espalier.Runs("Registration", func(ctx context.Context, tenant *v1alpha1.Tenant) error {
		if !isTrue(tenant, v1alpha1.NamespaceReady) && !isTrue(tenant, v1alpha1.Registered) {
			return espalier.NotReady("NoNamespace", "a tenant is listed when it has its namespace")
		}
		err := dir.Register(ctx, entryOf(tenant))
		switch {
		case errors.Is(err, directory.ErrTaken):
			return espalier.NotReady("NotOurs", "%s", directory.ErrTaken).RetryAfter(takenInterval)
		case err != nil:
			return fmt.Errorf("unable to register tenant %s: %w", tenant.Name, err)
		}
		return nil
	}).Reports(v1alpha1.Registered)
}

// Unregistration removes the entry of a deleted tenant. It needs a finalizer.
func Unregistration(dir directory.Directory) node {
	return &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
		Name: "Unregistration",
		Sync: func(context.Context, *v1alpha1.Tenant) error { return nil },
		Finalize: func(ctx context.Context, tenant *v1alpha1.Tenant) error {
			if err := dir.Unregister(ctx, tenant.Name, string(tenant.UID)); err != nil {
				return fmt.Errorf("unable to unregister tenant %s: %w", tenant.Name, err)
			}
			return nil
		},
	}
}

func entryOf(tenant *v1alpha1.Tenant) directory.Entry {
	return directory.Entry{
		Tenant:      tenant.Name,
		UID:         string(tenant.UID),
		DisplayName: displayNameOf(tenant),
		Owner:       tenant.Spec.Owner,
	}
}

func displayNameOf(tenant *v1alpha1.Tenant) string {
	return cmp.Or(tenant.Spec.DisplayName, tenant.Name)
}
