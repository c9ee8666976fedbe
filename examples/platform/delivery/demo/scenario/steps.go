package scenario

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	steps := slices.Concat(s.installation(), s.upgrade())
	if s.remote != nil {
		steps = append(steps, s.delivery()...)
	}
	steps = append(steps, s.rest())
	if s.remote != nil {
		steps = append(steps, s.outage()...)
	}
	return append(steps, s.deletion()...)
}

func (s *scenario) installation() []demo.Step {
	return []demo.Step{
		demo.When("The operator starts: these trees", s.startOperator).
			Showing(func() string { return s.trees }).
			See("it has what its roles grant, and no more: it may not grant rights",
				s.Operator.Synced,
				s.May(OperatorUser, "create", "batch", "jobs", demo.Everywhere),
				s.MayNot(OperatorUser, "create", "rbac.authorization.k8s.io", "rolebindings", demo.Everywhere)),

		demo.When("A monitor is ordered: a chart with a sub-chart, hooks, and a type of its own",
			s.Creates(orderedMonitor())).
			See("the hook pre-install comes first", s.Exist(prepare), s.waitsFor(prepare)).Showing(s.Said).
			See("nothing else of the chart is there yet", s.Gone(ordinaryAnd(verify)...)),

		demo.When("The Job of that hook succeeds", s.succeeds(prepare)).
			See("the Job is taken away, as its delete policy says", s.Gone(prepare)).
			See("the type and its first instance are there, and what the sub-chart has",
				s.Exist(ordinaryAnd(probeType)...)).
			See("the hook post-install comes last", s.waitsFor(verify)).Showing(s.Said),

		demo.When("The Job of that hook succeeds, too", s.succeeds(verify)).
			See("the monitor is Ready: revision 1, an installation", s.IsReady(monitor),
				s.HasData(settings, "retention", "30d", "revision", "1", "installed", "now")).
			See("the Job stays for those who want to read its log", s.Has(verify, "{.status.succeeded}", "1")),
	}
}

func (s *scenario) upgrade() []demo.Step {
	return []demo.Step{
		demo.When("Values are ordered that the schema of the chart refuses",
			s.Remembers(ordinaryAnd(probeType, verify)...), s.orders(monitor, "retention", "forever")).
			See("the condition names the value",
				s.Reports(monitor, apis.ConditionReady, metav1.ConditionFalse, "Error", "retention")).Showing(s.Said).
			See("no object was touched", s.Untouched),

		demo.When("Other values are ordered: an upgrade", s.orders(monitor, "retention", "60d")).
			See("the hook pre-upgrade comes first", s.Exist(prepare), s.waitsFor(prepare)).Showing(s.Said).
			See("the settings are still those of revision 1",
				s.HasData(settings, "retention", "30d", "revision", "1")),

		demo.When("The Jobs of both hooks succeed", s.succeeds(prepare), s.succeeds(verify)).
			See("the monitor is Ready: a later revision, an upgrade", s.IsReady(monitor),
				s.isAtLaterRevision, s.HasData(settings, "retention", "60d", "installed", "before")),
	}
}

func (s *scenario) delivery() []demo.Step {
	// These are words of the API server.
	missing := fmt.Sprintf("User %q cannot create resource %q in API group %q in the namespace %q",
		courierUser, "networkpolicies", "networking.k8s.io", namespace)
	return []demo.Step{
		demo.When("An agent is ordered: a kustomization for another cluster, as a service account there",
			s.preparesRemote, s.Creates(orderedAgent())).
			See("the condition says who lacks which permission",
				s.Reports(agent, apis.ConditionReady, metav1.ConditionFalse, "Error", missing, agentPolicy.GetName())).
			Showing(s.Said).
			See("what the account may create is there, and not in the cluster of the agent",
				s.remote.Exist(agentAccount, agentSettings), s.Gone(agentAccount, agentSettings)),

		demo.When("The account is granted that",
			s.remote.Grants(role("deliver-policies", "create", "networking.k8s.io", "networkpolicies"), courierUser)).
			See("the agent is Ready", s.IsReady(agent),
				s.remote.Exist(agentPolicy), s.remote.HasData(agentSettings, "interval", "30s")),
	}
}

// rest has the resources reconciled again.
func (s *scenario) rest() demo.Step {
	resources := []client.Object{monitor}
	if s.remote != nil {
		resources = append(resources, agent)
	}
	unchanged := demo.Without("calls of the generators", s.renderings.Load, s.Idle(resources...))
	if s.remote != nil {
		requests := func() int64 { return s.remoteRequests("") }
		unchanged = demo.All(s.countsRequests, demo.Without("requests to the second cluster", requests, unchanged))
	}
	return demo.When("All that is delivered is reconciled again, and nothing has changed").
		See(fmt.Sprintf("%d reconciles of each: no API request, in no cluster, and nothing rendered", demo.IdleRounds),
			unchanged)
}

func (s *scenario) outage() []demo.Step {
	goesDown := func(context.Context) error { return s.Second.StopAPIServer() }
	comesBack := func(context.Context) error { return s.Second.StartAPIServer() }
	return []demo.Step{
		demo.When("The other cluster goes down; then other values are ordered for the agent",
			goesDown, s.orders(agent, "interval", "1m")).
			See("the condition says so", s.Reports(agent,
				apis.ConditionReady, metav1.ConditionUnknown, "ClusterUnreachable", kubeconfigSecret)).Showing(s.Said).
			See("the monitor is Ready all the same", s.IsReady(monitor)),

		demo.When("It is back", comesBack).
			See("the agent is Ready, with these values", s.IsReady(agent),
				s.remote.HasData(agentSettings, "interval", "1m")),

		demo.When("The agent is deleted", s.Deletes(agent)).
			See("its objects in the other cluster are gone, and so is the agent",
				s.Gone(agent), s.remote.Gone(agentAccount, agentSettings, agentPolicy)),
	}
}

func (s *scenario) deletion() []demo.Step {
	inUse := fmt.Sprintf("%s: in use by Probe %s/%s", software.ProbeTypeName, namespace, otherProbe.GetName())
	return []demo.Step{
		demo.When("Another user makes a probe; then the monitor is deleted",
			s.Creates(otherProbe), s.Remembers(ordinaryAnd(probeType, verify, otherProbe)...),
			s.Deletes(monitor)).
			See("that is blocked: the condition names the probe that would go along",
				s.Reports(monitor, apis.ConditionReady, metav1.ConditionUnknown, "DeletionBlocked", inUse)).
			Showing(s.Said).
			See("nothing was deleted", s.Untouched),

		demo.When("That probe is deleted", s.Deletes(otherProbe)).
			See("the monitor is gone", s.Gone(monitor)).
			See("so are its objects, its type, and the Jobs of its hooks",
				s.Gone(ordinaryAnd(probeType, verify, prepare)...)),
	}
}
