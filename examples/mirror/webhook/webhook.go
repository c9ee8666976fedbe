// Package webhook has the webhooks of both operators.
package webhook

import (
	"context"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
)

// defaultImage is that of this release.
const defaultImage = "registry.example.com/mirror:1.0"

// SetUp has the manager serve the webhooks.
func SetUp(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1.Mirror{}).
		WithDefaulter(webhooks{}).WithDefaulterCustomPath("/default").
		WithValidator(webhooks{}).WithValidatorCustomPath("/validate").
		Complete()
}

type webhooks struct{}

// Default fills in the image.
func (webhooks) Default(_ context.Context, mirror *v1.Mirror) error {
	if mirror.Spec.Image == "" {
		mirror.Spec.Image = defaultImage
	}
	return nil
}

// ValidateCreate refuses what the schema cannot see to be wrong.
func (webhooks) ValidateCreate(_ context.Context, mirror *v1.Mirror) (admission.Warnings, error) {
	return nil, invalid(mirror, validate(mirror))
}

// ValidateUpdate does so, too, and refuses a change of the storage.
func (webhooks) ValidateUpdate(_ context.Context, old, mirror *v1.Mirror) (admission.Warnings, error) {
	problems := validate(mirror)
	if mirror.Spec.Storage.Cmp(old.Spec.Storage) != 0 {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "storage"), "cannot be changed"))
	}
	return nil, invalid(mirror, problems)
}

// ValidateDelete allows all.
func (webhooks) ValidateDelete(context.Context, *v1.Mirror) (admission.Warnings, error) {
	return nil, nil
}

func validate(mirror *v1.Mirror) field.ErrorList {
	if site, err := url.Parse(mirror.Spec.Upstream); err != nil || site.Scheme != "https" || site.Host == "" {
		return field.ErrorList{
			field.Invalid(field.NewPath("spec", "upstream"), mirror.Spec.Upstream, "must be https://…"),
		}
	}
	return nil
}

func invalid(mirror *v1.Mirror, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1.GroupVersion.WithKind("Mirror").GroupKind(), mirror.Name, problems)
}
