package scenario

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

// steps is the whole scenario. It has a fight for those who look at the page: others would wait for more than a minute.
func (s *scenario) steps() []demo.Step {
	steps := s.installation()
	if len(s.observers) > 0 {
		steps = append(steps, s.fight())
	}
	steps = slices.Concat(steps, s.drift(), s.upgrades())
	if !s.Controllers {
		// They play the part of the controller of Deployments.
		steps = append(steps, s.search()...)
	}
	return append(steps, s.deletion()...)
}

func (s *scenario) installation() []demo.Step {
	return []demo.Step{
		demo.When("The operator starts: this tree", s.startOperator).
			Showing(controller.New(reconcilers.Config{}).Describe().String).
			See("it has what its role grants, and no more: there are no Secrets for it",
				s.Operator.Synced,
				s.May(OperatorUser, "create", "apiextensions.k8s.io", "customresourcedefinitions", demo.Everywhere),
				s.MayNot(OperatorUser, "list", "", "secrets", demo.Everywhere)),

		demo.When("Release 1.0 is ordered: eight objects in three waves",
			s.Creates(platformOf(controller.Version1))).
			See("the first wave is there: the type, the rights, the settings",
				s.Exist(dashboardType, viewer, viewerRole, viewerBinding, settings)).
			See("the second wave waits for the migration", s.waitsForMigration()).Showing(s.Said).
			See("nothing of the third is there yet", s.Gone(overview, portal)),

		demo.When("The migration is carried out", s.migratesTo(controller.Version1)).
			See("it is taken away: it was needed for its wave only", s.Gone(migration)).
			See("the third wave waits for the first dashboard to be shown",
				s.Exist(overview), s.isProcessing("Wave 3 of 3: 1 of 2 ready", overview.GetName())).Showing(s.Said),

		demo.When("The first dashboard is shown", s.showsOverview()).
			See("the platform is Ready, with a record of each object", s.IsReady(platform), s.hasRecords(8)),

		demo.When("The platform is reconciled again, and nothing has changed").
			See(fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), s.Idle(platform)),
	}
}

// fight takes its time: the engine waits until it is sure that nobody changes the object any more.
func (s *scenario) fight() demo.Step {
	changes := demo.Condition(s.Patches(settings, `{"data":{"retention":"1d"}}`))
	isContested := s.Reports(platform, v1alpha1.Installed, metav1.ConditionFalse, "Contested", settings.Name)
	return demo.When("Somebody else changes the settings again and again", s.Until(demo.All(changes, isContested))).
		See("the condition names the object, the field and who writes it", isContested).Showing(s.Said).
		See("they stop, the settings are as before, and the platform is Ready again",
			s.HasData(settings, "retention", "30d"), s.IsReady(platform), s.hasRecords(8))
}

func (s *scenario) drift() []demo.Step {
	return []demo.Step{
		demo.When("A user edits the settings, and deletes the account of the viewer",
			s.Remembers(viewer), s.Deletes(viewer), s.Patches(settings, `{"data":{"retention":"1d"}}`)).
			See("the settings are as before", s.HasData(settings, "retention", "30d")).
			See("there is a new account", s.Replaced).
			See("the platform is Ready; the migration was not needed for that",
				s.IsReady(platform), s.hasRecords(8), s.Gone(migration)),

		demo.When("Release 9.9 is ordered, which does not exist",
			s.Remembers(dashboardType, viewer, viewerRole, settings, overview, portal), s.orders("9.9")).
			See("the status says so",
				s.Reports(platform, v1alpha1.ReleaseFound, metav1.ConditionFalse, "NotFound", "9.9")).
			Showing(s.Said).
			See("no object was touched", s.Untouched),
	}
}

func (s *scenario) upgrades() []demo.Step {
	return []demo.Step{
		demo.When("Release 1.1 is ordered, which has no portal",
			s.Remembers(dashboardType, overview), s.orders(controller.Version11)).
			See("the settings are those of the release", s.HasData(settings, "version", controller.Version11)).
			See("the portal is pruned: nothing else of its wave is to be written", s.Gone(portal)).
			See("the migration of the release is waited for", s.waitsForMigration()),

		demo.When("That migration is carried out", s.migratesTo(controller.Version11)).
			See("the platform is Ready, with a record less", s.IsReady(platform), s.hasRecords(7)).
			See("the type and the first dashboard were not touched", s.Untouched),

		// A type is dropped when all that is wanted is ready.
		demo.When("Another user makes a dashboard; then release 2.0, which has none, is ordered and migrated",
			s.Creates(sales), s.Remembers(dashboardType, sales),
			s.orders(controller.Version2), s.migratesTo(controller.Version2)).
			See("the type is not deleted: the condition names the dashboard that needs it", s.isProcessing(inUse)).
			Showing(s.Said).
			See("all else goes on: the settings are those of the release",
				s.HasData(settings, "version", controller.Version2)).
			See("the platform's own dashboard is gone", s.Gone(overview)).
			See("the type and the other dashboard were not touched", s.Untouched),

		demo.When("So release 1.1 is ordered again",
			s.orders(controller.Version11), s.migratesTo(controller.Version11), s.showsOverview()).
			See("the platform is Ready", s.IsReady(platform), s.hasRecords(7)).
			See("the type and the other dashboard were not touched", s.Untouched),
	}
}

// search switches a feature on, suspends it, and switches it off.
func (s *scenario) search() []demo.Step {
	no, yes := metav1.ConditionFalse, metav1.ConditionTrue
	return []demo.Step{
		demo.When("A search is asked for; a ConfigMap of somebody else has the name of its telemetry",
			s.Creates(telemetry), s.Remembers(telemetry), s.Patches(platform, `{"spec":{"search":{}}}`)).
			See("the index is there, and the Deployment waits for its data",
				s.Exist(index), s.searchIs(no, "Blocked", "endpoint"), s.Gone(engine)).Showing(s.Said).
			See("the telemetry is not touched, and the status says what blocks it",
				s.Untouched,
				s.Has(platform, `{.status.features[*].dependents[?(@.name=="demo-telemetry")].state}`, "Blocked")),

		demo.When("The index is built: the guard opens",
			s.Patches(index, fmt.Sprintf(`{"data":{%q:"http://index"}}`, controller.Endpoint))).
			See("the Deployment is there, and has the data", s.Has(engine,
				`{.spec.template.spec.containers[*].env[?(@.name=="INDEX")].value}`, "http://index")).
			See("the search is not ready yet", s.searchIs(no, "Creating", engine.Name)).Showing(s.Said),

		demo.When("Its Pods do not start in time", s.engineReports(`"replicas":2`,
			`{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out"}`)).
			See("the condition names the Deployment and the reason, before the grace period ends",
				s.searchIs(no, "Failing", engine.Name)).Showing(s.Said).
			See("the platform is Ready all the same", s.IsReady(platform), s.hasRecords(7)),

		demo.When("The other ConfigMap goes, and the Pods start after all", s.Deletes(telemetry), s.engineRuns()).
			See("the search is healthy", s.searchIs(yes, "Healthy")).
			See("it has its own telemetry now", s.Exist(telemetry)).
			See(fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), s.Idle(platform)),

		demo.When("The search is suspended", s.Patches(platform, `{"spec":{"search":{"suspended":true}}}`)).
			See("the Deployment is scaled to zero, and its Pods are waited for",
				s.Has(engine, "{.spec.replicas}", "0"), s.searchIs(no, "Suspending")).Showing(s.Said),

		demo.When("Its Pods are gone",
			s.engineReports(`"replicas":0,"readyReplicas":0,"updatedReplicas":0,"availableReplicas":0`)).
			See("the search is suspended", s.searchIs(yes, "Suspended")),

		demo.When("It is resumed", s.Patches(platform, `{"spec":{"search":{"suspended":false}}}`),
			s.Until(s.Has(engine, "{.spec.replicas}", "2")), s.engineRuns()).
			See("the search is healthy again", s.searchIs(yes, "Healthy")),

		demo.When("It is switched off", s.Patches(platform, `{"spec":{"search":null}}`)).
			See("its objects are deleted, and the condition says that it is disabled",
				s.Gone(index, engine, telemetry), s.searchIs(yes, "Disabled")),
	}
}

func (s *scenario) deletion() []demo.Step {
	return []demo.Step{
		demo.When("The platform is deleted", s.Remembers(partsAnd(sales)...), s.Deletes(platform)).
			See("that is blocked: the condition names the dashboard that would go along",
				s.Reports(platform, v1alpha1.Installed, metav1.ConditionUnknown, "DeletionBlocked", inUse)).
			Showing(s.Said).
			See("nothing was deleted, neither of the release nor the information about it", s.Untouched),

		demo.When("That dashboard is deleted", s.Deletes(sales)).
			See("the platform is gone", s.Gone(platform)).
			See("so are all of its objects", s.Gone(partsAnd(portal, migration)...)),
	}
}
