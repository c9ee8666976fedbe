package story

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// Steps is the whole story.
func Steps() []Step {
	return slices.Concat(installation(), drift(), upgrades(), refusal(), end())
}

func installation() []Step {
	return []Step{
		{
			Title: "The operator starts: this tree",
			Do:    func(ctx context.Context, w *World) error { return w.startOperator(ctx) },
			Show:  func(w *World) string { return w.tree },
			Facts: []Fact{
				{Text: "its caches are filled", Holds: isRunning},
				{Text: "it may do what the role says that comes from the tree", Holds: may(true, "create", "apiextensions.k8s.io", "customresourcedefinitions")},
				{Text: "it may do nothing else: there are no Secrets for it", Holds: may(false, "list", "", "secrets")},
			},
		},
		{
			Title: "Release 1.0 is ordered: eight objects in three waves",
			Do:    order,
			Facts: []Fact{
				{Text: "the first wave is there: the type, the rights, the settings", Holds: areThere(theType(), viewer(), viewerRole(), viewerBinding(), settings())},
				{Text: "the second wave waits for the migration", Holds: waitsForMigration(2, 3), Show: said},
				{Text: "nothing of the third is there yet", Holds: areGone(overview(), portal())},
			},
		},
		{
			Title: "Somebody carries the migration out",
			Do:    func(ctx context.Context, w *World) error { return w.migrate(ctx, controller.Version1) },
			Facts: []Fact{
				{Text: "it is taken away: it was needed for its wave only", Holds: areGone(migration())},
				{Text: "the third wave waits for the first dashboard to be shown", Holds: waits("Wave 3 of 3: 1 of 2 ready", controller.OverviewName(name)), Show: said},
			},
		},
		{
			Title: "Somebody shows that dashboard",
			Do:    func(ctx context.Context, w *World) error { return w.show(ctx) },
			Facts: []Fact{
				{Text: "the platform is Ready, with a record of each object", Holds: isReady(controller.Version1, 8)},
				{Text: "its condition says so", Holds: reports(v1alpha1.Installed, metav1.ConditionTrue, "Ready"), Show: said},
			},
		},
		{
			Title: "The platform is reconciled again, and nothing has changed",
			Facts: []Fact{
				{Text: fmt.Sprintf("%d reconciles made no API request", storytelling.SteadyRounds), Holds: isSteady},
			},
		},
	}
}

func drift() []Step {
	return []Step{
		{
			Title: "Somebody edits the settings",
			Do: func(ctx context.Context, w *World) error {
				return w.Patch(ctx, settings(), namespace, controller.SettingsName(name), `{"data":{"retention":"1d"}}`)
			},
			Facts: []Fact{
				{Text: "they are put right", Holds: settingsSay("retention", "30d")},
			},
		},
		{
			Title: "Somebody deletes the account of the viewer",
			Do: func(ctx context.Context, w *World) error {
				account := viewer()
				if err := w.remember(ctx, account); err != nil {
					return err
				}
				return w.Client.Delete(ctx, account)
			},
			Facts: []Fact{
				{Text: "there is a new one", Holds: isNew(viewer())},
				{Text: "the platform is Ready; the migration was not needed for that", Holds: storytelling.AllOf(isReady(controller.Version1, 8), areGone(migration()))},
			},
		},
		{
			Title: "Release 9.9 is ordered, which does not exist",
			Do: func(ctx context.Context, w *World) error {
				if err := w.remember(ctx, theType(), viewer(), viewerRole(), settings(), overview(), portal()); err != nil {
					return err
				}
				return w.setVersion(ctx, "9.9")
			},
			Facts: []Fact{
				{Text: "the status says so", Holds: reports(v1alpha1.ReleaseFound, metav1.ConditionFalse, "NotFound", "9.9"), Show: said},
				{Text: "nothing was touched", Holds: areUntouched},
			},
		},
	}
}

func upgrades() []Step {
	return []Step{
		{
			Title: "Release 1.1 is ordered, which has no portal",
			Do: func(ctx context.Context, w *World) error {
				if err := w.remember(ctx, theType(), overview()); err != nil {
					return err
				}
				return w.setVersion(ctx, controller.Version11)
			},
			Facts: []Fact{
				{Text: "the settings are those of the release", Holds: settingsSay("version", controller.Version11)},
				{Text: "the portal is pruned: nothing else of its wave is to be written", Holds: areGone(portal())},
				{Text: "the migration of the release is waited for", Holds: waitsForMigration(2, 3), Show: said},
			},
		},
		{
			Title: "Somebody carries that migration out",
			Do:    func(ctx context.Context, w *World) error { return w.migrate(ctx, controller.Version11) },
			Facts: []Fact{
				{Text: "the platform is Ready, with a record less", Holds: isReady(controller.Version11, 7)},
				{Text: "the type and the first dashboard were not touched", Holds: areUntouched},
			},
		},
	}
}

func refusal() []Step {
	return []Step{
		{
			Title: "Somebody else makes a dashboard; then release 2.0 is ordered, which has none",
			Do: func(ctx context.Context, w *World) error {
				if err := w.Create(ctx, sales()); err != nil {
					return err
				}
				if err := w.remember(ctx, theType(), sales()); err != nil {
					return err
				}
				return w.setVersion(ctx, controller.Version2)
			},
			Facts: []Fact{
				{Text: "the type is not dropped: the condition names whose dashboard needs it", Holds: waits(inUse), Show: said},
				{Text: "the type and that dashboard were not touched", Holds: areUntouched},
				{Text: "all else goes on: the settings are those of the release", Holds: settingsSay("version", controller.Version2)},
				{Text: "the platform's own dashboard went", Holds: areGone(overview())},
			},
		},
		{
			Title: "Somebody carries the migration out",
			Do:    func(ctx context.Context, w *World) error { return w.migrate(ctx, controller.Version2) },
			Facts: []Fact{
				{Text: "it is taken away", Holds: areGone(migration())},
				{Text: "nothing is left to do but to drop the type", Holds: reports(v1alpha1.Installed, metav1.ConditionUnknown, "Processing", "Blocked: ", inUse), Show: said},
				{Text: "the type and that dashboard are there still", Holds: areUntouched},
			},
		},
		{
			Title: "So release 1.1 is ordered again",
			Do:    func(ctx context.Context, w *World) error { return w.setVersion(ctx, controller.Version11) },
			Facts: []Fact{
				{Text: "the type stays, and the migration of the release is waited for", Holds: waitsForMigration(2, 3)},
			},
		},
		{
			Title: "The migration is carried out, and the first dashboard is shown",
			Do: func(ctx context.Context, w *World) error {
				if err := w.migrate(ctx, controller.Version11); err != nil {
					return err
				}
				return storytelling.Eventually(ctx, w.options.Patience, w.show)
			},
			Facts: []Fact{
				{Text: "the platform is Ready", Holds: isReady(controller.Version11, 7)},
				{Text: "the dashboard of the other one was not touched", Holds: areUntouched},
			},
		},
	}
}

func end() []Step {
	parts := []client.Object{theType(), viewer(), viewerRole(), viewerBinding(), settings(), overview()}
	return []Step{
		{
			Title: "The platform is deleted",
			Do: func(ctx context.Context, w *World) error {
				if err := w.remember(ctx, append(slices.Clone(parts), sales())...); err != nil {
					return err
				}
				return w.deletePlatform(ctx)
			},
			Facts: []Fact{
				{Text: "that is blocked: the condition names whose dashboard would go along", Holds: reports(v1alpha1.Installed, metav1.ConditionUnknown, "DeletionBlocked", inUse), Show: said},
				{Text: "nothing was deleted", Holds: areUntouched},
			},
		},
		{
			Title: "That dashboard is deleted",
			Do:    func(ctx context.Context, w *World) error { return w.Client.Delete(ctx, sales()) },
			Facts: []Fact{
				{Text: "the platform is gone", Holds: areGone(&v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})},
				{Text: "nothing of it is left", Holds: areGone(append(slices.Clone(parts), portal(), migration())...)},
			},
		},
	}
}

// inUse is what the condition says of the dashboard of somebody else.
var inUse = fmt.Sprintf("%s: in use by Dashboard %s/%s", controller.DashboardCRDName, namespace, sales().GetName())

// waitsForMigration holds when the condition says that the wave waits for the migration, and nothing else.
func waitsForMigration(wave, waves int) check {
	message := fmt.Sprintf("Wave %d of %d: 0 of 1 ready, waiting for ConfigMap %s/%s: ready-when: is not true yet",
		wave, waves, namespace, controller.MigrationName(name))
	return func(ctx context.Context, w *World) error {
		if err := waits(message)(ctx, w); err != nil {
			return err
		}
		if !strings.HasSuffix(w.said, message) {
			return fmt.Errorf("the condition says more: %s", w.said)
		}
		return nil
	}
}

// waits holds when the condition says that the platform is under way, and has all of these parts.
func waits(parts ...string) check {
	return reports(v1alpha1.Installed, metav1.ConditionUnknown, "Processing", parts...)
}
