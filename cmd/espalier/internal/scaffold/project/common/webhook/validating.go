package webhook

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Validating returns the webhook that refuses what the schema cannot see to be wrong.
func Validating() *reconcilers.AdmissionWebhookAdapter[*v9alpha9.Placeholder] {
	return &reconcilers.AdmissionWebhookAdapter[*v9alpha9.Placeholder]{
		Name: "Validating",
		Reconciler: &reconcilers.SyncReconciler[*v9alpha9.Placeholder]{
			Name: "Image",
			Sync: func(ctx context.Context, resource *v9alpha9.Placeholder) error {
				return reconcilers.InvalidFields(ctx, resource, validate(&resource.Spec))
			},
		},
	}
}

func validate(spec *v9alpha9.PlaceholderSpec) field.ErrorList {
	if strings.ContainsAny(spec.Image, " \t\n") {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "image"), spec.Image, "must not have white space")}
	}
	return nil
}
