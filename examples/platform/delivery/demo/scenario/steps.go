package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	steps := slices.Concat(s.installation(), s.upgrade())
	resources := []client.Object{theMonitor()}
	if s.remote != nil {
		steps = append(steps, s.delivery()...)
		resources = append(resources, theAgent())
	}
	steps = append(steps, s.idle(resources...))
	if s.remote != nil {
		steps = append(steps, s.outage()...)
	}
	return append(steps, s.deletion()...)
}

func (s *scenario) installation() []demo.Step {
	return []demo.Step{
		{
			Title: "The operator starts: these trees",
			Do:    s.startOperator,
			Show:  func() string { return s.trees },
			Checks: []demo.Check{
				{Text: "it has what its roles grant, and no more: it may not grant rights", Holds: demo.All(
					s.Operator.Synced,
					s.May(OperatorUser, "create", "batch", "jobs", demo.Everywhere),
					s.MayNot(OperatorUser, "create", "rbac.authorization.k8s.io", "rolebindings", demo.Everywhere))},
			},
		},
		{
			Title: "A monitor is ordered: a chart with a sub-chart, hooks, and a type of its own",
			Do: func(ctx context.Context) error {
				ordered := theMonitor()
				// Nobody but the scenario runs the Jobs.
				ordered.Spec.Values = v1alpha1.Values{"jobs": map[string]any{"managedBy": "example.com/demo"}}
				return s.Create(ctx, ordered)
			},
			Checks: []demo.Check{
				{Text: "the hook pre-install comes first", Show: s.message,
					Holds: demo.All(s.Exist(prepare()), s.waits(prepare()))},
				{Text: "nothing else of the chart is there yet", Holds: s.Gone(append(ordinary(), verify())...)},
			},
		},
		{
			Title: "The Job of that hook succeeds",
			Do:    func(ctx context.Context) error { return demo.Eventually(ctx, s.Patience, s.run(prepare())) },
			Checks: []demo.Check{
				{Text: "the Job is taken away, as its delete policy says", Holds: s.Gone(prepare())},
				{Text: "the type and its first instance are there, and what the sub-chart has",
					Holds: s.Exist(append(ordinary(), theType())...)},
				{Text: "the hook post-install comes last", Holds: s.waits(verify()), Show: s.message},
			},
		},
		{
			Title: "The Job of that hook succeeds, too",
			Do:    func(ctx context.Context) error { return demo.Eventually(ctx, s.Patience, s.run(verify())) },
			Checks: []demo.Check{
				{Text: "the monitor is Ready: revision 1, an installation", Holds: demo.All(s.isReady(monitorStatus),
					say(s.Fixture, settings(), "retention", "30d", "revision", "1", "installed", "now"))},
				{Text: "the Job stays for those who want to read its log", Holds: s.finished(verify())},
			},
		},
	}
}

func (s *scenario) upgrade() []demo.Step {
	return []demo.Step{
		{
			Title: "Values are ordered that the schema of the chart refuses",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, append(ordinary(), theType(), verify())...),
					s.setValue(ctx, theMonitor(), "retention", "forever"))
			},
			Checks: []demo.Check{
				{Text: "the condition names the value", Show: s.message,
					Holds: s.reports(monitorStatus, metav1.ConditionFalse, "Error", "retention")},
				{Text: "no object was touched", Holds: s.Untouched},
			},
		},
		{
			Title: "Other values are ordered: an upgrade",
			Do:    func(ctx context.Context) error { return s.setValue(ctx, theMonitor(), "retention", "60d") },
			Checks: []demo.Check{
				{Text: "the hook pre-upgrade comes first", Show: s.message,
					Holds: demo.All(s.Exist(prepare()), s.waits(prepare()))},
				{Text: "the settings are still those of revision 1",
					Holds: say(s.Fixture, settings(), "retention", "30d", "revision", "1")},
			},
		},
		{
			Title: "The Jobs of both hooks succeed",
			Do: func(ctx context.Context) error {
				return errors.Join(demo.Eventually(ctx, s.Patience, s.run(prepare())),
					demo.Eventually(ctx, s.Patience, s.run(verify())))
			},
			Checks: []demo.Check{
				{Text: "the monitor is Ready: a later revision, an upgrade", Holds: demo.All(s.isReady(monitorStatus),
					s.upgraded, say(s.Fixture, settings(), "retention", "60d", "installed", "before"))},
			},
		},
	}
}

// idle has the resources reconciled again.
func (s *scenario) idle(resources ...client.Object) demo.Step {
	text := fmt.Sprintf("%d reconciles of each: no API request, in no cluster, and nothing rendered", demo.IdleRounds)
	unchanged := s.Idle(resources...)
	return demo.Step{
		Title: "All that is delivered is reconciled again, and nothing has changed",
		Checks: []demo.Check{{Text: text, Holds: func(ctx context.Context) error {
			rendered := s.renderings.Load()
			requested, err := s.remoteRequests()
			if err != nil {
				return err
			}
			if err := unchanged(ctx); err != nil {
				return err
			}
			if n := s.renderings.Load() - rendered; n > 0 {
				return fmt.Errorf("the generators were called %d times", n)
			}
			now, err := s.remoteRequests()
			if err == nil && now != requested {
				err = fmt.Errorf("%g requests to the second cluster", now-requested)
			}
			return err
		}}},
	}
}

func (s *scenario) deletion() []demo.Step {
	inUse := fmt.Sprintf("%s: in use by Probe %s/%s", software.ProbeTypeName, namespace, otherProbe().GetName())
	parts := func() []client.Object { return append(ordinary(), theType(), verify()) }
	return []demo.Step{
		{
			Title: "Another user makes a probe; then the monitor is deleted",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Create(ctx, otherProbe()), s.Remember(ctx, append(parts(), otherProbe())...),
					s.Client.Delete(ctx, theMonitor()))
			},
			Checks: []demo.Check{
				{Text: "that is blocked: the condition names the probe that would go along", Show: s.message,
					Holds: s.reports(monitorStatus, metav1.ConditionUnknown, "DeletionBlocked", inUse)},
				{Text: "nothing was deleted", Holds: s.Untouched},
			},
		},
		{
			Title: "That probe is deleted",
			Do:    func(ctx context.Context) error { return s.Client.Delete(ctx, otherProbe()) },
			Checks: []demo.Check{
				{Text: "the monitor is gone", Holds: s.Gone(theMonitor())},
				{Text: "so are its objects, its type, and the Jobs of its hooks",
					Holds: s.Gone(append(parts(), prepare())...)},
			},
		},
	}
}

// setValue orders another value.
func (s *scenario) setValue(ctx context.Context, resource client.Object, name, value string) error {
	return s.Patch(ctx, resource, fmt.Sprintf(`{"spec":{"values":{%q:%q}}}`, name, value))
}
