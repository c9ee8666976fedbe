package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// takenInterval is how often a name is asked for that another tenant has: the directory does not report when it is
// free.
const takenInterval = time.Minute

// Registration lists the tenant in the directory once it has its namespace, and removes the entry in the end. It needs
// a finalizer for that.
func Registration(dir directory.Directory) reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
		Name: "Registration",
		SyncWithResult: func(ctx context.Context, tenant *v1alpha1.Tenant) (reconcilers.Result, error) {
			conditions := tenant.Status.Manage(ctx)
			if !isTrue(tenant, v1alpha1.NamespaceReady) && !isTrue(tenant, v1alpha1.Registered) {
				conditions.MarkUnknown(v1alpha1.Registered, "NoNamespace",
					"a tenant is listed when it has its namespace")
				return reconcilers.Result{}, nil
			}
			err := dir.Register(ctx, entryOf(tenant))
			switch {
			case errors.Is(err, directory.ErrTaken):
				conditions.MarkFalse(v1alpha1.Registered, "NotOurs", "%s", directory.ErrTaken)
				return reconcilers.Result{RequeueAfter: takenInterval}, nil
			case err != nil:
				conditions.MarkUnknown(v1alpha1.Registered, "DirectoryFailed", "the directory did not take the entry")
				return reconcilers.Result{}, fmt.Errorf("unable to register tenant %s: %w", tenant.Name, err)
			}
			conditions.MarkTrue(v1alpha1.Registered, "Listed", "")
			return reconcilers.Result{}, nil
		},
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
