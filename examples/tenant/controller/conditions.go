package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// isTrue reports whether a condition of the tenant is True.
func isTrue(tenant *v1alpha1.Tenant, condition string) bool {
	return apis.ConditionIsTrue(tenant.Status.GetCondition(condition))
}

// reflected returns a function that reflects a child on a condition: present is its reason when there is a child,
// absent when there is to be none.
func reflected[Child client.Object](
	condition, present, absent string,
) func(context.Context, *v1alpha1.Tenant, Child, error) {
	return func(ctx context.Context, tenant *v1alpha1.Tenant, child Child, err error) {
		conditions := tenant.Status.Manage(ctx)
		var none Child
		switch {
		case err != nil:
			reason, message := explain(err)
			conditions.MarkFalse(condition, reason, "%s", message)
		case client.Object(child) == client.Object(none):
			conditions.MarkTrue(condition, absent, "")
		default:
			conditions.MarkTrue(condition, present, "")
		}
	}
}

// explain says what a user can do something about, in the words of a condition.
func explain(err error) (reason, message string) {
	if apierrors.IsAlreadyExists(err) {
		return "NotOurs", err.Error() + " and does not belong to this tenant"
	}
	return string(apierrors.ReasonForError(err)), err.Error()
}

// invalid says that a tenant asks for what it cannot have, where the schema cannot know. A node that returns it changes
// nothing and reflects it.
func invalid(tenant *v1alpha1.Tenant, problems ...*field.Error) error {
	kind := v1alpha1.GroupVersion.WithKind("Tenant").GroupKind()
	return apierrors.NewInvalid(kind, tenant.Name, problems)
}
