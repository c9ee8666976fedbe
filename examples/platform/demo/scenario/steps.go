package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	steps := slices.Concat(s.installation(), s.drift(), s.upgrades())
	if !s.Controllers {
		// They play the part of the controller of Deployments.
		steps = append(steps, s.search()...)
	}
	return append(steps, s.deletion()...)
}

func (s *scenario) installation() []demo.Step {
	return []demo.Step{
		{
			Title: "The operator starts: this tree",
			Do:    s.startOperator,
			Show:  func() string { return s.tree },
			Checks: []demo.Check{
				{Text: "it has what its role grants, and no more: there are no Secrets for it", Holds: demo.All(
					s.Operator.Synced,
					s.May(OperatorUser, "create", "apiextensions.k8s.io", "customresourcedefinitions", demo.Everywhere),
					s.MayNot(OperatorUser, "list", "", "secrets", demo.Everywhere))},
			},
		},
		{
			Title: "Release 1.0 is ordered: eight objects in three waves",
			Do: func(ctx context.Context) error {
				platform := thePlatform()
				platform.Spec.Version = controller.Version1
				return s.Create(ctx, platform)
			},
			Checks: []demo.Check{
				{Text: "the first wave is there: the type, the rights, the settings",
					Holds: s.Exist(theType(), viewer(), viewerRole(), viewerBinding(), settings())},
				{Text: "the second wave waits for the migration", Holds: s.waitsForMigration, Show: s.message},
				{Text: "nothing of the third is there yet", Holds: s.Gone(overview(), portal())},
			},
		},
		{
			Title: "The migration is carried out",
			Do:    func(ctx context.Context) error { return s.migrate(ctx, controller.Version1) },
			Checks: []demo.Check{
				{Text: "it is taken away: it was needed for its wave only", Holds: s.Gone(migration())},
				{Text: "the third wave waits for the first dashboard to be shown", Show: s.message,
					Holds: demo.All(s.Exist(overview()),
						s.isProcessing("Wave 3 of 3: 1 of 2 ready", controller.OverviewName(name)))},
			},
		},
		{
			Title: "The first dashboard is shown",
			Do:    s.showDashboard,
			Checks: []demo.Check{
				{Text: "the platform is Ready, with a record of each object", Holds: s.isReady(controller.Version1, 8)},
			},
		},
		{
			Title: "The platform is reconciled again, and nothing has changed",
			Checks: []demo.Check{
				{Text: fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), Holds: s.Idle(thePlatform())},
			},
		},
	}
}

func (s *scenario) drift() []demo.Step {
	return []demo.Step{
		{
			Title: "A user edits the settings, and deletes the account of the viewer",
			Do: func(ctx context.Context) error {
				account := viewer()
				return errors.Join(s.Remember(ctx, account), s.Client.Delete(ctx, account),
					s.Patch(ctx, settings(), `{"data":{"retention":"1d"}}`))
			},
			Checks: []demo.Check{
				{Text: "the settings are as before", Holds: s.settingsSay("retention", "30d")},
				{Text: "there is a new account", Holds: s.Replaced},
				{Text: "the platform is Ready; the migration was not needed for that",
					Holds: demo.All(s.isReady(controller.Version1, 8), s.Gone(migration()))},
			},
		},
		{
			Title: "Release 9.9 is ordered, which does not exist",
			Do: func(ctx context.Context) error {
				err := s.Remember(ctx, theType(), viewer(), viewerRole(), settings(), overview(), portal())
				return errors.Join(err, s.setVersion(ctx, "9.9"))
			},
			Checks: []demo.Check{
				{Text: "the status says so", Show: s.message,
					Holds: s.reports(v1alpha1.ReleaseFound, metav1.ConditionFalse, "NotFound", "9.9")},
				{Text: "no object was touched", Holds: s.Untouched},
			},
		},
	}
}

func (s *scenario) upgrades() []demo.Step {
	return []demo.Step{
		{
			Title: "Release 1.1 is ordered, which has no portal",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, theType(), overview()), s.setVersion(ctx, controller.Version11))
			},
			Checks: []demo.Check{
				{Text: "the settings are those of the release", Holds: s.settingsSay("version", controller.Version11)},
				{Text: "the portal is pruned: nothing else of its wave is to be written", Holds: s.Gone(portal())},
				{Text: "the migration of the release is waited for", Holds: s.waitsForMigration},
			},
		},
		{
			Title: "That migration is carried out",
			Do:    func(ctx context.Context) error { return s.migrate(ctx, controller.Version11) },
			Checks: []demo.Check{
				{Text: "the platform is Ready, with a record less", Holds: s.isReady(controller.Version11, 7)},
				{Text: "the type and the first dashboard were not touched", Holds: s.Untouched},
			},
		},
		{
			Title: "Another user makes a dashboard; then release 2.0, which has none, is ordered and migrated",
			Do: func(ctx context.Context) error {
				migrate := func(ctx context.Context) error { return s.migrate(ctx, controller.Version2) }
				// A type is dropped when all that is wanted is ready.
				return errors.Join(s.Create(ctx, sales()), s.Remember(ctx, theType(), sales()),
					s.setVersion(ctx, controller.Version2), demo.Eventually(ctx, s.Patience, migrate))
			},
			Checks: []demo.Check{
				{Text: "the type is not deleted: the condition names the dashboard that needs it",
					Holds: s.isProcessing(inUse), Show: s.message},
				{Text: "all else goes on: the settings are those of the release",
					Holds: s.settingsSay("version", controller.Version2)},
				{Text: "the platform's own dashboard is gone", Holds: s.Gone(overview())},
				{Text: "the type and the other dashboard were not touched", Holds: s.Untouched},
			},
		},
		{
			Title: "So release 1.1 is ordered again",
			Do: func(ctx context.Context) error {
				migrate := func(ctx context.Context) error { return s.migrate(ctx, controller.Version11) }
				// The migration is there when the first wave is ready, the dashboard after that.
				return errors.Join(s.setVersion(ctx, controller.Version11),
					demo.Eventually(ctx, s.Patience, migrate), demo.Eventually(ctx, s.Patience, s.showDashboard))
			},
			Checks: []demo.Check{
				{Text: "the platform is Ready", Holds: s.isReady(controller.Version11, 7)},
				{Text: "the type and the other dashboard were not touched", Holds: s.Untouched},
			},
		},
	}
}

func (s *scenario) deletion() []demo.Step {
	parts := []client.Object{
		theType(), viewer(), viewerRole(), viewerBinding(), settings(), overview(), information(),
	}
	return []demo.Step{
		{
			Title: "The platform is deleted",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, append(slices.Clone(parts), sales())...),
					s.Client.Delete(ctx, thePlatform()))
			},
			Checks: []demo.Check{
				{Text: "that is blocked: the condition names the dashboard that would go along", Show: s.message,
					Holds: s.reports(v1alpha1.Installed, metav1.ConditionUnknown, "DeletionBlocked", inUse)},
				{Text: "nothing was deleted, neither of the release nor the information about it", Holds: s.Untouched},
			},
		},
		{
			Title: "That dashboard is deleted",
			Do:    func(ctx context.Context) error { return s.Client.Delete(ctx, sales()) },
			Checks: []demo.Check{
				{Text: "the platform is gone", Holds: s.Gone(thePlatform())},
				{Text: "so are all of its objects",
					Holds: s.Gone(append(slices.Clone(parts), portal(), migration())...)},
			},
		},
	}
}

// inUse is what the condition says of the dashboard that does not belong to the platform.
var inUse = fmt.Sprintf("%s: in use by Dashboard %s/%s", controller.DashboardCRDName, namespace, sales().GetName())

func (s *scenario) setVersion(ctx context.Context, version string) error {
	return s.Patch(ctx, thePlatform(), fmt.Sprintf(`{"spec":{"version":%q}}`, version))
}

// migrate does what a Job would do.
func (s *scenario) migrate(ctx context.Context, version string) error {
	return s.Patch(ctx, migration(), fmt.Sprintf(`{"data":{%q:%q}}`, controller.Migrated, version))
}

// showDashboard does what an operator of dashboards would do.
func (s *scenario) showDashboard(ctx context.Context) error {
	const ready = `{"type":"Ready","status":"True","reason":"Shown","message":"","lastTransitionTime":%q}`
	condition := fmt.Sprintf(ready, time.Now().UTC().Format(time.RFC3339))
	change := `{"status":{"conditions":[` + condition + `]}}`
	return s.Client.Status().Patch(ctx, overview(), client.RawPatch("application/merge-patch+json", []byte(change)))
}
