package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	steps := []demo.Step{
		demo.When("The operator starts: this tree", s.startOperator).Showing(func() string { return s.tree }).
			See("it has what its role grants, and no more: there are no Secrets for it", s.Operator.Synced,
				s.May(OperatorUser, "patch", "apps", "deployments", demo.Everywhere),
				s.MayNot(OperatorUser, "list", "", "secrets", demo.Everywhere)),
	}
	if s.Webhooks {
		steps = append(steps, s.dryRuns())
	}
	return slices.Concat(steps, s.life(), s.drift(), s.others(), s.outage(), s.end())
}

func (s *scenario) dryRuns() demo.Step {
	trees := webhooks.Defaulting().Describe().String() + webhooks.Validation().Describe().String()
	return demo.When("The API server calls the operator's webhooks; a user tries out some shops by dry runs",
		s.registerWebhooks, s.tryShops).
		Showing(func() string { return trees + strings.Join(s.answers, "\n") }).
		See("one gets its host in lower case, and the name of the user", s.isCompleted).
		See("the impossible one is refused, with a cause for each field", s.isRefusedByFields).
		See("the one without replicas gets a warning", s.isWarnedOf).
		See("names are not too long, which the schema sees to", s.isTooLong).
		See("a dry run leaves nothing behind", s.Gone(dry(), impossible(), deserted()), s.hostIs(dry(), ""))
}

func (s *scenario) life() []demo.Step {
	return []demo.Step{
		demo.When("A shop is ordered. Its settings are in a ConfigMap that is missing", s.Creates(s.newShop())).
			See("the condition says what is waited for",
				s.Reports(web(), v1.SettingsFound, "False", "NotFound", settings().Name)).Showing(s.Said).
			See("nothing is made without the settings", s.Gone(parts()...), s.hostIs(web(), "")),
		demo.When("The ConfigMap is created", s.Creates(newSettings())).
			See("it goes on by itself: a Deployment, a Service, an Ingress, two CronJobs",
				s.Exist(parts()...)).
			See("the registry, outside the cluster, has its host", s.hostIs(web(), host)),
		demo.When("The Deployment is rolled out", s.Until(s.RollsOut(deployment("web")))).
			See("the shop is Ready", s.IsReady(web())),
		demo.When("The shop is reconciled again, and nothing has changed").
			See(fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), s.Idle(web())),
		demo.When("A value in the ConfigMap changes",
			s.noteChecksum, s.Patches(settings(), `{"data":{"COLOUR":"blue"}}`)).
			See("the Deployment follows: its pods are to be replaced", s.hasOtherChecksum),
		demo.When("Another schedule is ordered for a worker, and the other worker is dropped",
			s.Patches(web(), `{"spec":{"workers":[{"name":"mail","schedule":"30 4 * * *"}]}}`)).
			See("its CronJob has the schedule", s.hasSchedule("30 4 * * *")).
			See("the other CronJob is deleted", s.Gone(cronJob("report"))),
	}
}

func (s *scenario) drift() []demo.Step {
	return []demo.Step{
		demo.When("A user deletes the Service, and edits the Ingress",
			s.Until(s.RollsOut(deployment("web"))), s.Until(s.IsReady(web())),
			s.Remembers(service("web")), s.Deletes(service("web")),
			s.Patches(ingress(), `{"spec":{"rules":[{"host":"elsewhere.example.com"}]}}`)).
			See("there is a new Service", s.Replaced).
			See("the Ingress is as before", s.leadsFrom(host)),
		demo.When("A user names settings that do not exist, drops the last worker, and orders another host",
			s.Remembers(parts()[:4]...),
			s.Patches(web(), `{"spec":{"settings":"colors","workers":null,"host":"shop.example.com"}}`)).
			See("the condition says what is wrong",
				s.Reports(web(), v1.SettingsFound, "False", "NotFound", "colors")).Showing(s.Said).
			See("all that the shop has stays as it is", s.Untouched, s.hostIs(web(), host)),
		demo.When("The name is corrected",
			s.Patches(web(), fmt.Sprintf(`{"spec":{"settings":%q}}`, settings().Name))).
			See("the CronJob is deleted", s.Gone(cronJob("mail"))).
			See("the Ingress and the registry have the other host",
				s.leadsFrom("shop.example.com"), s.hostIs(web(), "shop.example.com")).
			See("the shop is Ready", s.IsReady(web())),
	}
}

// others has objects and hosts that belong to somebody else.
func (s *scenario) others() []demo.Step {
	return []demo.Step{
		demo.When("A shop is ordered where somebody else has a Service and an Ingress of its name",
			s.Creates(theirService(), theirIngress()), s.Remembers(theirService(), theirIngress()),
			s.Creates(s.newCopy())).
			See("the conditions say so", s.Reports(second(), v1.ServiceReady, "False", "AlreadyExists"),
				s.Reports(second(), v1.IngressReady, "False", "AlreadyExists")).Showing(s.Said).
			See("neither was touched", s.Untouched).
			See("all else goes on: there is a Deployment", s.Exist(deployment("copy"))).
			See("the host is not registered, as that waits for the Ingress",
				s.Reports(second(), v1.Registered, "Unknown", "Waiting", "Ingress")).Showing(s.Said),
		demo.When("They delete both", s.Deletes(theirService(), theirIngress())).
			See("the shop goes on by itself: it has its own", s.Owned(second(), theirService(), theirIngress())).
			See("but its host belongs to the first shop, which the condition says",
				s.Reports(second(), v1.Registered, "False", "HostTaken", "shop.example.com")).Showing(s.Said).
			See("the registry has not changed", s.hostIs(web(), "shop.example.com"), s.hostIs(second(), "")),
		demo.When("The second shop gets a host of its own",
			s.Patches(second(), `{"spec":{"host":"copy.example.com"}}`), s.Until(s.RollsOut(deployment("copy")))).
			See("it is Ready", s.IsReady(second()), s.hostIs(second(), "copy.example.com")),
	}
}

func (s *scenario) outage() []demo.Step {
	protected := demo.When("The first shop is protected", s.Patches(web(), protection("true"))).
		See("the API server does not delete it: the webhook says why", s.isProtected)
	steps := []demo.Step{
		demo.When("The registry fails. The first shop gets another host, and the second is deleted",
			s.registry(errors.New("the registry is down")), s.noteReconciles,
			s.Patches(web(), `{"spec":{"host":"new.example.com"}}`), s.Deletes(second())).
			See("the condition of the first says so",
				s.Reports(web(), v1.Registered, "False", "Failed", "the registry is down")).Showing(s.Said).
			See("all else goes on: its Ingress has the other host", s.leadsFrom("new.example.com")).
			See("the second waits, as the registry may have its host: it is asked again", s.isAskedAgain).
			See("what it has stays meanwhile", s.Exist(deployment("copy"), theirService(), theirIngress())),
		demo.When("The registry is back", s.registry(nil)).
			See("the first shop is Ready, with the other host", s.IsReady(web()), s.hostIs(web(), "new.example.com")).
			See("the second is gone, and its host is free", s.Gone(second()), s.hostIs(second(), "")).
			See("so is what it had", s.Gone(deployment("copy"), theirService(), theirIngress())),
	}
	if s.Webhooks {
		steps = append(steps, protected)
	}
	return steps
}

func (s *scenario) end() []demo.Step {
	return []demo.Step{
		demo.When("What is left is reconciled again, and nothing has changed").
			See(fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), s.Idle(web())),
		demo.When("The shop is deleted, which is not protected any more",
			s.Patches(web(), protection("false")), s.Deletes(web())).
			See("it is gone, and its host is free", s.Gone(web()), s.hostIs(web(), "")).
			See("so is what it had, but for the settings, which are somebody else's",
				s.Gone(parts()...), s.Exist(settings())),
	}
}

func protection(value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, webhooks.ProtectedAnnotation, value)
}
