package controller

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// What "make generate" makes the configurations of the webhooks of:
//
// +kubebuilder:webhookconfiguration:mutating=true,name=tenant-operator
// +kubebuilder:webhookconfiguration:mutating=false,name=tenant-operator
// +kubebuilder:webhook:path=/mutate-tenancy-example-com-v1alpha1-tenant,mutating=true,failurePolicy=fail,sideEffects=None,groups=tenancy.example.com,resources=tenants,verbs=create;update,versions=v1alpha1,name=defaulting.tenancy.example.com,admissionReviewVersions=v1,serviceName=tenant-operator,serviceNamespace=tenant-operator
// +kubebuilder:webhook:path=/validate-tenancy-example-com-v1alpha1-tenant,mutating=false,failurePolicy=fail,sideEffects=None,groups=tenancy.example.com,resources=tenants,verbs=create;update;delete,versions=v1alpha1,name=validation.tenancy.example.com,admissionReviewVersions=v1,serviceName=tenant-operator,serviceNamespace=tenant-operator

// Where the webhooks are served.
const (
	DefaultingPath = "/mutate-tenancy-example-com-v1alpha1-tenant"
	ValidationPath = "/validate-tenancy-example-com-v1alpha1-tenant"
)

const (
	// OrderedByAnnotation names the user who has ordered a tenant.
	OrderedByAnnotation = "tenancy.example.com/ordered-by"
	// ProtectedAnnotation keeps a tenant from being deleted, if it is "true".
	ProtectedAnnotation = "tenancy.example.com/protected"
)

// SetupWebhooks has the server serve the webhooks.
func SetupWebhooks(ctx context.Context, server webhook.Server, options Options) error {
	for path, adapter := range map[string]*reconcilers.AdmissionWebhookAdapter[*v1alpha1.Tenant]{
		DefaultingPath: NewDefaulting(),
		ValidationPath: NewValidation(options),
	} {
		hook, err := adapter.BuildWithContext(ctx)
		if err != nil {
			return err
		}
		server.Register(path, hook)
	}
	return nil
}

// NewDefaulting returns the webhook that fills in what the order of a tenant has left out.
func NewDefaulting() *reconcilers.AdmissionWebhookAdapter[*v1alpha1.Tenant] {
	return &reconcilers.AdmissionWebhookAdapter[*v1alpha1.Tenant]{
		Name: "Defaulting",
		Reconciler: reconcilers.Sequence[*v1alpha1.Tenant]{
			&reconcilers.SyncReconciler[*v1alpha1.Tenant]{Name: "DisplayName", Sync: fillInDisplayName},
			&reconcilers.SyncReconciler[*v1alpha1.Tenant]{Name: "OrderedBy", Sync: noteWhoOrdered},
		},
	}
}

// NewValidation returns the webhook that refuses what the schema cannot see to be wrong and the tree can: by the same
// checks, but before it is stored. What is stored already does not keep a client from changing something else, the
// operator for one.
func NewValidation(options Options) *reconcilers.AdmissionWebhookAdapter[*v1alpha1.Tenant] {
	return &reconcilers.AdmissionWebhookAdapter[*v1alpha1.Tenant]{
		Name: "Validation",
		Reconciler: &reconcilers.IfThen[*v1alpha1.Tenant]{
			Name: "IsDeletion",
			If:   isOperation(admissionv1.Delete),
			Then: &reconcilers.SyncReconciler[*v1alpha1.Tenant]{Name: "Protection", Sync: protect},
			Else: reconcilers.Sequence[*v1alpha1.Tenant]{
				&reconcilers.SyncReconciler[*v1alpha1.Tenant]{Name: "OnlyChanges", Sync: haltUnlessChanged},
				// A user hears of all mistakes at once.
				reconcilers.Always[*v1alpha1.Tenant]{
					&reconcilers.IfThen[*v1alpha1.Tenant]{
						Name: "IsCreation",
						If:   isOperation(admissionv1.Create),
						Then: &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
							Name: "Name",
							Sync: func(ctx context.Context, tenant *v1alpha1.Tenant) error {
								return reconcilers.InvalidFields(ctx, tenant, checkName(tenant, options.ReservedNames))
							},
						},
					},
					&reconcilers.SyncReconciler[*v1alpha1.Tenant]{
						Name: "Quota",
						Sync: func(ctx context.Context, tenant *v1alpha1.Tenant) error {
							return reconcilers.InvalidFields(ctx, tenant, checkQuota(tenant))
						},
					},
					&reconcilers.SyncReconciler[*v1alpha1.Tenant]{Name: "Members", Sync: warnOfNoMembers},
				},
			},
		},
	}
}

func isOperation(operation admissionv1.Operation) func(context.Context, *v1alpha1.Tenant) bool {
	return func(ctx context.Context, _ *v1alpha1.Tenant) bool {
		return reconcilers.RetrieveAdmissionRequest(ctx).Operation == operation
	}
}

func fillInDisplayName(_ context.Context, tenant *v1alpha1.Tenant) error {
	tenant.Spec.DisplayName = displayNameOf(tenant)
	return nil
}

// noteWhoOrdered keeps the annotation what it was when the tenant was created, also if a user writes another name.
func noteWhoOrdered(ctx context.Context, tenant *v1alpha1.Tenant) error {
	who := reconcilers.RetrieveAdmissionRequest(ctx).UserInfo.Username
	old, err := reconcilers.RetrieveOldResource[*v1alpha1.Tenant](ctx)
	if err != nil {
		return err
	}
	if old != nil {
		who = old.Annotations[OrderedByAnnotation]
	}
	if who == "" {
		delete(tenant.Annotations, OrderedByAnnotation)
		return nil
	}
	tenant.Annotations = reconcilers.MergeMaps(tenant.Annotations, map[string]string{OrderedByAnnotation: who})
	return nil
}

func protect(_ context.Context, tenant *v1alpha1.Tenant) error {
	if tenant.Annotations[ProtectedAnnotation] == "true" {
		return reconcilers.Deny("tenant %s is protected: to delete it, remove the annotation %s",
			tenant.Name, ProtectedAnnotation)
	}
	return nil
}

// haltUnlessChanged ends the checks, and allows the request, if the spec is what it was.
func haltUnlessChanged(ctx context.Context, tenant *v1alpha1.Tenant) error {
	old, err := reconcilers.RetrieveOldResource[*v1alpha1.Tenant](ctx)
	if err == nil && old != nil && equality.Semantic.DeepEqual(old.Spec, tenant.Spec) {
		return reconcilers.ErrHaltSubReconcilers
	}
	return err
}

func warnOfNoMembers(ctx context.Context, tenant *v1alpha1.Tenant) error {
	if len(tenant.Spec.Members) == 0 {
		reconcilers.Warn(ctx, "tenant %s has no members: nobody can work in its namespace", tenant.Name)
	}
	return nil
}
