package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/plugins"
)

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	return slices.Concat(s.start(), s.arrival(), s.kills(), s.replacement(), s.mistake(), s.end())
}

func (s *scenario) start() []demo.Step {
	return []demo.Step{
		{
			Title: "The operator starts. It knows nothing of databases and queues: this tree",
			Do:    s.startOperator,
			Show:  func() string { return s.tree },
			Checks: []demo.Check{
				{Text: "it has what its roles grant: plugins may ask for these kinds, and no others", Holds: demo.All(
					s.Operator.Synced,
					s.May(OperatorUser, "create", "apps", "statefulsets", demo.Everywhere),
					s.MayNot(OperatorUser, "create", "apps", "deployments", demo.Everywhere))},
			},
		},
		{
			Title: "A shop is ordered. A plugin is in the folder, but its SHA-256 is not in the list",
			Do: func(ctx context.Context) error {
				ordered := theShop()
				ordered.Spec.Database.Version = "15.6"
				ordered.Spec.Queue = &v1.Queue{Names: []string{"orders"}}
				return s.Create(ctx, ordered)
			},
			Checks: []demo.Check{
				{Text: "what is the operator's own is there", Holds: s.isReady(v1.FrontReady)},
				{Text: "there is no queue, and the condition says why", Show: s.message,
					Holds: s.says(v1.QueueReady, metav1.ConditionFalse, plugins.ReasonNoPlugin, "queue/rabbit")},
				{Text: "there is no database, and the condition names the file", Show: s.message, Holds: s.says(
					v1.DatabaseReady, metav1.ConditionFalse, plugins.ReasonNoPlugin, "postgres", "not in the list")},
			},
		},
	}
}

func (s *scenario) arrival() []demo.Step {
	return []demo.Step{
		{
			Title: "The plugin is listed, and another one starts beside the operator",
			Do: func(ctx context.Context) error {
				return errors.Join(s.pod.writeList("postgres"), s.pod.run(ctx))
			},
			Show: func() string {
				program := filepath.Base(s.pod.command[0])
				if program == "rabbit" {
					return "It is the one in Go: here is no Python with grpcio for rabbit.py."
				}
				return "It is rabbit.py, which " + program + " runs."
			},
			Checks: []demo.Check{
				{Text: "the shop goes on by itself: its queue is there", Holds: demo.All(
					s.isReady(v1.QueueReady), s.has("orders"), s.Exist(broker()))},
				{Text: "so is its database, with the address that its Service was given",
					Holds: demo.All(s.Exist(ofDatabase()...), s.connects)},
				{Text: "the condition waits for the server, by the rules for its kind", Show: s.message,
					Holds: s.says(v1.DatabaseReady, metav1.ConditionFalse, "InProgress", "StatefulSet")},
				{Text: "users see what they can ask for: kubectl get capabilities.plugins.espalier.dev",
					Holds: s.shows("database/postgres 16.2, 15.6", "queue/rabbit")},
			},
		},
		{
			Title:  "The server of the database runs",
			Do:     func(ctx context.Context) error { return demo.Eventually(ctx, s.Patience, s.rollOut("15.6")) },
			Checks: []demo.Check{{Text: "the shop is Ready", Holds: s.isReady(v1.Ready)}},
		},
		s.idle(),
	}
}

// idle has the shop reconciled again.
func (s *scenario) idle() demo.Step {
	unchanged := s.Idle(theShop())
	return demo.Step{
		Title: "The shop is reconciled again, and nothing has changed",
		Checks: []demo.Check{{
			Text: fmt.Sprintf("%d reconciles: no API request, and no call of a plugin", demo.IdleRounds),
			Holds: func(ctx context.Context) error {
				asked := s.pod.asked.Load()
				if err := unchanged(ctx); err != nil {
					return err
				}
				if n := s.pod.asked.Load() - asked; n > 0 {
					return fmt.Errorf("the plugin was asked %d times", n)
				}
				return nil
			},
		}},
	}
}

func (s *scenario) kills() []demo.Step {
	var before int
	return []demo.Step{
		{
			Title: "kill -9: the program. At the same time, another version of the database is ordered",
			Do: func(ctx context.Context) (err error) {
				if before, err = childCalled("postgres"); err != nil {
					return err
				}
				return errors.Join(syscall.Kill(before, syscall.SIGKILL), s.order(ctx, "16.2"))
			},
			Checks: []demo.Check{
				{Text: "the operator has started it again", Holds: runsAnother(&before)},
				{Text: "it was asked: the database has the other version", Holds: s.rollOut("16.2")},
				{Text: "the shop is Ready", Holds: s.isReady(v1.Ready)},
			},
		},
		{
			Title: "kill -9: the sidecar. A user deletes what it gave the shop",
			Do: func(ctx context.Context) error {
				return errors.Join(s.pod.kill(), s.Remember(ctx, ofQueue()...), s.Client.Delete(ctx, broker()),
					s.Client.Delete(ctx, queues()))
			},
			Checks: []demo.Check{
				{Text: "the objects are there again: nobody has to be asked", Holds: s.Replaced},
				{Text: "the queue is Ready", Holds: s.isReady(v1.QueueReady)},
			},
		},
		{
			Title: "Another queue is ordered",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, append(ofQueue(), ofDatabase()...)...),
					s.Patch(ctx, theShop(), `{"spec":{"queue":{"names":["orders","returns"]}}}`))
			},
			Checks: []demo.Check{
				{Text: "nobody can say what that needs: the condition says so", Show: s.message,
					Holds: s.says(v1.QueueReady, metav1.ConditionFalse, plugins.ReasonPluginUnavailable)},
				{Text: "all objects stay as they are, and the database is Ready",
					Holds: demo.All(s.Untouched, s.isReady(v1.DatabaseReady))},
			},
		},
		{
			Title: "The sidecar is started again",
			Do:    func(ctx context.Context) error { return s.pod.run(ctx) },
			Checks: []demo.Check{
				{Text: "the shop goes on by itself: it has the other queue, and is Ready",
					Holds: demo.All(s.has("returns"), s.isReady(v1.Ready))},
			},
		},
	}
}

func (s *scenario) replacement() []demo.Step {
	return []demo.Step{
		{
			Title: "A version of the database is ordered that the plugin does not know",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, ofDatabase()...), s.order(ctx, "17.1"))
			},
			Checks: []demo.Check{
				{Text: "the condition says which there are", Show: s.message, Holds: s.says(
					v1.DatabaseReady, metav1.ConditionFalse, plugins.ReasonNoPlugin, "17.1", "16.2, 15.6")},
				{Text: "the database stays as it is", Holds: s.Untouched},
			},
		},
		{
			Title: "A new release of the plugin replaces the old one: first the file, then the list",
			Do: func(context.Context) error {
				return errors.Join(s.pod.put("postgres-next", "postgres"), s.pod.writeList("postgres"))
			},
			Checks: []demo.Check{
				{Text: "the shop goes on by itself: the database has that version", Holds: s.rollOut("17.1")},
				{Text: "the shop is Ready", Holds: s.isReady(v1.Ready)},
				{Text: "users see the new version",
					Holds: s.shows("database/postgres 17.1, 16.2, 15.6", "queue/rabbit")},
			},
		},
	}
}

func (s *scenario) mistake() []demo.Step {
	return []demo.Step{
		{
			Title: "The sidecar is replaced by one that wants a ConfigMap in the namespace of others",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, append(ofQueue(), ofDatabase()...)...),
					s.pod.run(ctx, "--shared", brokers))
			},
			Checks: []demo.Check{
				{Text: "its answer is refused: the condition says why", Show: s.message, Holds: s.says(
					v1.QueueReady, metav1.ConditionFalse, plugins.ReasonAnswerRefused, "definitions", brokers)},
				{Text: "there is nothing of it in that namespace", Holds: s.Gone(elsewhere())},
				{Text: "all objects stay as they are, and the database is Ready",
					Holds: demo.All(s.Untouched, s.isReady(v1.DatabaseReady))},
			},
		},
		{
			Title:  "The sidecar is the right one again",
			Do:     func(ctx context.Context) error { return s.pod.run(ctx) },
			Checks: []demo.Check{{Text: "the shop is Ready", Holds: s.isReady(v1.Ready)}},
		},
	}
}

func (s *scenario) end() []demo.Step {
	return []demo.Step{
		{
			Title: "Both plugins are taken away. The shop does without its queue",
			Do: func(ctx context.Context) error {
				return errors.Join(s.pod.writeList(), s.pod.kill(), s.Remember(ctx, ofDatabase()...),
					s.Patch(ctx, theShop(), `{"spec":{"queue":null}}`))
			},
			Checks: []demo.Check{
				{Text: "what the queue had is deleted without a plugin: the status has a record of it",
					Holds: demo.All(s.Gone(ofQueue()...), s.says(v1.QueueReady, metav1.ConditionTrue, "NotDesired"))},
				{Text: "the program has ended, and the condition says so", Show: s.message, Holds: demo.All(
					hasEnded, s.says(v1.DatabaseReady, metav1.ConditionFalse, plugins.ReasonNoPlugin))},
				{Text: "the database stays as it is, and will go with the shop, which owns it",
					Holds: demo.All(s.Untouched, s.areOwned(ofDatabase()...))},
			},
		},
	}
}

// order orders a version of the database.
func (s *scenario) order(ctx context.Context, version string) error {
	return s.Patch(ctx, theShop(), fmt.Sprintf(`{"spec":{"database":{"version":%q}}}`, version))
}
