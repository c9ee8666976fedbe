package webhook

import (
	"context"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
	"github.com/espalier-dev/espalier/reconcilers"
)

// defaultImage is what a Placeholder without an image runs.
const defaultImage = "nginx:stable"

// Defaulting returns the webhook that fills in what the schema cannot.
func Defaulting() *reconcilers.AdmissionWebhookAdapter[*v9alpha9.Placeholder] {
	return &reconcilers.AdmissionWebhookAdapter[*v9alpha9.Placeholder]{
		Name: "Defaulting",
		Reconciler: &reconcilers.SyncReconciler[*v9alpha9.Placeholder]{
			Name: "Image",
			Sync: func(_ context.Context, resource *v9alpha9.Placeholder) error {
				if resource.Spec.Image == "" {
					resource.Spec.Image = defaultImage
				}
				return nil
			},
		},
	}
}
