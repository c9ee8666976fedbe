package scenario

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// fight takes more than a minute, since the engine waits until it is sure that nobody changes the object any more.
func (s *scenario) fight() []demo.Step {
	return []demo.Step{{
		Title: "Somebody else changes the settings again and again",
		Do: func(ctx context.Context) error {
			return demo.Eventually(ctx, s.Patience, func(ctx context.Context) error {
				return errors.Join(s.Patch(ctx, settings(), `{"data":{"retention":"1d"}}`), s.isContested(ctx))
			})
		},
		Checks: []demo.Check{
			{Text: "the condition names the object, the field and who writes it", Show: s.message,
				Holds: s.isContested},
			{Text: "they stop, the settings are as before, and the platform is Ready again",
				Holds: demo.All(s.settingsSay("retention", "30d"), s.isReady(controller.Version1, 8))},
		},
	}}
}

func (s *scenario) isContested(ctx context.Context) error {
	return s.reports(v1alpha1.Installed, metav1.ConditionFalse, "Contested", settings().GetName())(ctx)
}
