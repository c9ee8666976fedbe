package scenario

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/plugins"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	return slices.Concat(s.start(), s.kills(), s.replacement())
}

func (s *scenario) start() []demo.Step {
	return []demo.Step{
		demo.When("The operator starts. It knows nothing of databases and queues: this tree", s.startOperator).
			Showing(func() string { return s.tree }).
			See("it has what its roles grant: plugins may ask for these kinds, and no others", s.Operator.Synced,
				s.May(OperatorUser, "create", "apps", "statefulsets", demo.Everywhere),
				s.MayNot(OperatorUser, "create", "apps", "daemonsets", demo.Everywhere)),

		demo.When("A shop is ordered. A plugin is in the folder, but its SHA-256 is not in the list",
			s.Creates(order())).
			See("what is the operator's own is there", s.isReady(v1.ServiceReady), s.Exist(deployment)).
			See("there is no queue, and the condition says why",
				s.isNotReady(v1.QueueReady, plugins.ReasonNoPlugin, "queue/rabbit")).Showing(s.Said).
			See("there is no database, and the condition names the file",
				s.isNotReady(v1.DatabaseReady, plugins.ReasonNoPlugin, "postgres", "not in the list")).Showing(s.Said),

		demo.When("The plugin is listed, and another one starts beside the operator",
			s.pod.lists, s.pod.startsSidecar()).Showing(s.pod.which).
			See("the shop goes on by itself: its queue is there",
				s.isReady(v1.QueueReady), s.has("orders"), s.Exist(broker)).
			See("so is its database, with the address that its Service was given",
				s.Exist(ofDatabase...), s.connects).
			See("the condition waits for the server, by the rules for its kind",
				s.isNotReady(v1.DatabaseReady, "InProgress", "StatefulSet")).Showing(s.Said).
			See("users see what they can ask for: kubectl get capabilities.plugins.espalier.dev",
				s.shows("database/postgres 16.2, 15.6", "queue/rabbit")),

		demo.When("The server of the database runs", s.Until(s.rollsOut("15.6")), s.Until(s.RollsOut(deployment))).
			See("the shop is Ready", s.IsReady(shop)),

		demo.When("The shop is reconciled again, and nothing has changed").
			See(fmt.Sprintf("%d reconciles: no API request, and no call of a plugin", demo.IdleRounds),
				demo.Without("calls of the plugin", s.pod.asked.Load, s.Idle(shop))),
	}
}

func (s *scenario) kills() []demo.Step {
	return []demo.Step{
		demo.When("kill -9: the program. At the same time, another version of the database is ordered",
			s.pod.killsProgram, s.orders("16.2")).
			See("the operator has started it again", s.pod.runsAnother).
			See("it was asked: the database has the other version", s.rollsOut("16.2")).
			See("the shop is Ready", s.IsReady(shop)),

		demo.When("kill -9: the sidecar. A user deletes what it gave the shop",
			s.pod.killsSidecar, s.Remembers(ofQueue...), s.Deletes(ofQueue...)).
			See("the objects are there again: nobody has to be asked", s.Replaced).
			See("the queue is Ready", s.isReady(v1.QueueReady)),

		demo.When("Another queue is ordered",
			s.Remembers(ofBoth...), s.Patches(shop, `{"spec":{"queue":{"names":["orders","returns"]}}}`)).
			See("nobody can say what that needs: the condition says so",
				s.isNotReady(v1.QueueReady, plugins.ReasonPluginUnavailable)).Showing(s.Said).
			See("all objects stay as they are, and the database is Ready", s.Untouched, s.isReady(v1.DatabaseReady)),

		demo.When("The sidecar is started again", s.pod.startsSidecar()).
			See("the shop goes on by itself: it has the other queue, and is Ready",
				s.has("returns"), s.IsReady(shop)),
	}
}

func (s *scenario) replacement() []demo.Step {
	return []demo.Step{
		demo.When("A version of the database is ordered that the plugin does not know",
			s.Remembers(ofDatabase...), s.orders("17.1")).
			See("the condition says which there are",
				s.isNotReady(v1.DatabaseReady, plugins.ReasonNoPlugin, "17.1", "16.2, 15.6")).Showing(s.Said).
			See("the database stays as it is", s.Untouched),

		demo.When("A new release of the plugin replaces the old one: first the file, then the list",
			s.pod.puts("postgres-next"), s.pod.lists).
			See("the shop goes on by itself: the database has that version", s.rollsOut("17.1")).
			See("the shop is Ready", s.IsReady(shop)).
			See("users see the new version", s.shows("database/postgres 17.1, 16.2, 15.6", "queue/rabbit")),

		demo.When("The sidecar is replaced by one that wants a ConfigMap in the namespace of others",
			s.Remembers(ofBoth...), s.pod.startsSidecar("--shared", brokers)).
			See("its answer is refused: the condition says why",
				s.isNotReady(v1.QueueReady, plugins.ReasonAnswerRefused, "definitions", brokers)).Showing(s.Said).
			See("there is nothing of it in that namespace", s.Gone(elsewhere)).
			See("all objects stay as they are, and the database is Ready", s.Untouched, s.isReady(v1.DatabaseReady)),

		demo.When("The sidecar is the right one again", s.pod.startsSidecar()).
			See("the shop is Ready", s.IsReady(shop)),

		demo.When("Both plugins are taken away. The shop does without its queue", s.pod.listsNothing,
			s.pod.killsSidecar, s.Remembers(ofDatabase...), s.Patches(shop, `{"spec":{"queue":null}}`)).
			See("what the queue had is deleted without a plugin: the status has a record of it", s.Gone(ofQueue...),
				s.Reports(shop, v1.QueueReady, metav1.ConditionTrue, "NotDesired")).
			See("the program has ended, and the condition says so", s.pod.runsNone,
				s.isNotReady(v1.DatabaseReady, plugins.ReasonNoPlugin)).Showing(s.Said).
			See("the database stays as it is, and will go with the shop, which owns it",
				s.Untouched, s.Owned(shop, ofDatabase...)),
	}
}
