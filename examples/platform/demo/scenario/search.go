package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func index() client.Object { return configMap(controller.IndexName(name)) }

func engine() *appsv1.Deployment {
	return demo.Named[appsv1.Deployment](namespace, controller.SearchName(name))
}

// telemetry is in the way of the search: it belongs to somebody else.
func telemetry() client.Object { return configMap(controller.TelemetryName(name)) }

// search switches a feature on and off.
func (s *scenario) search() []demo.Step {
	return append(s.searchStarts(), s.searchRests()...)
}

func (s *scenario) searchStarts() []demo.Step {
	return []demo.Step{
		{
			Title: "A search is asked for; a ConfigMap of somebody else has the name of its telemetry",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Create(ctx, telemetry()), s.Remember(ctx, telemetry()),
					s.Patch(ctx, thePlatform(), `{"spec":{"search":{}}}`))
			},
			Checks: []demo.Check{
				{Text: "the index is there, and the Deployment waits for its data", Show: s.message,
					Holds: demo.All(s.Exist(index()), s.searchIs(metav1.ConditionFalse, "Blocked", "endpoint"),
						s.Gone(engine()))},
				{Text: "the telemetry is not touched, and the status says what blocks it",
					Holds: demo.All(s.Untouched, s.recorded(controller.TelemetryName(name), "Blocked"))},
			},
		},
		{
			Title: "The index is built: the guard opens",
			Do: func(ctx context.Context) error {
				return s.Patch(ctx, index(), fmt.Sprintf(`{"data":{%q:"http://index"}}`, controller.Endpoint))
			},
			Checks: []demo.Check{
				{Text: "the Deployment is there, and has the data", Holds: s.engineHas("http://index")},
				{Text: "the search is not ready yet", Show: s.message,
					Holds: s.searchIs(metav1.ConditionFalse, "Creating", controller.SearchName(name))},
			},
		},
		{
			Title: "Its Pods do not start in time",
			Do: s.reportEngine(`"replicas":2`,
				`{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out"}`),
			Checks: []demo.Check{
				{Text: "the condition names the Deployment and the reason, before the grace period ends",
					Show:  s.message,
					Holds: s.searchIs(metav1.ConditionFalse, "Failing", controller.SearchName(name))},
				{Text: "the platform is Ready all the same", Holds: s.isReady(controller.Version11, 7)},
			},
		},
		{
			Title: "The other ConfigMap goes, and the Pods start after all",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Client.Delete(ctx, telemetry()), s.engineRuns(ctx))
			},
			Checks: []demo.Check{
				{Text: "the search is healthy", Holds: s.searchIs(metav1.ConditionTrue, "Healthy")},
				{Text: "it has its own telemetry now", Holds: s.Exist(telemetry())},
				{Text: fmt.Sprintf("%d reconciles made no API request", demo.IdleRounds), Holds: s.Idle(thePlatform())},
			},
		},
	}
}

func (s *scenario) searchRests() []demo.Step {
	return []demo.Step{
		{
			Title: "The search is suspended",
			Do: func(ctx context.Context) error {
				return s.Patch(ctx, thePlatform(), `{"spec":{"search":{"suspended":true}}}`)
			},
			Checks: []demo.Check{
				{Text: "the Deployment is scaled to zero, and its Pods are waited for", Show: s.message,
					Holds: demo.All(s.engineScaledTo(0), s.searchIs(metav1.ConditionFalse, "Suspending"))},
			},
		},
		{
			Title: "Its Pods are gone",
			Do:    s.reportEngine(`"replicas":0,"readyReplicas":0,"updatedReplicas":0,"availableReplicas":0`),
			Checks: []demo.Check{
				{Text: "the search is suspended", Holds: s.searchIs(metav1.ConditionTrue, "Suspended")},
			},
		},
		{
			Title: "It is resumed",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Patch(ctx, thePlatform(), `{"spec":{"search":{"suspended":false}}}`),
					demo.Eventually(ctx, s.Patience, s.engineScaledTo(controller.SearchReplicas)), s.engineRuns(ctx))
			},
			Checks: []demo.Check{
				{Text: "the search is healthy again", Holds: s.searchIs(metav1.ConditionTrue, "Healthy")},
			},
		},
		{
			Title: "It is switched off",
			Do: func(ctx context.Context) error {
				return s.Patch(ctx, thePlatform(), `{"spec":{"search":null}}`)
			},
			Checks: []demo.Check{
				{Text: "its objects are deleted, and the condition says that it is disabled",
					Holds: demo.All(s.Gone(index(), engine(), telemetry()),
						s.searchIs(metav1.ConditionTrue, "Disabled"))},
			},
		},
	}
}

// searchIs holds when the condition of the search is as given.
func (s *scenario) searchIs(status metav1.ConditionStatus, reason string, parts ...string) demo.Condition {
	return s.reports(v1alpha1.SearchReady, status, reason, parts...)
}

// recorded holds when the status has an object of that name, with that state, among those that are not healthy.
func (s *scenario) recorded(object, state string) demo.Condition {
	return func(ctx context.Context) error {
		platform := thePlatform()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(platform), platform); err != nil {
			return err
		}
		for _, record := range platform.Status.Features {
			for _, dependent := range record.Dependents {
				if dependent.Name == object && string(dependent.State) == state {
					return nil
				}
			}
		}
		return fmt.Errorf("there is no %s that is %s in %+v", object, state, platform.Status.Features)
	}
}

// engineHas holds when the Deployment has a value among the variables of its containers.
func (s *scenario) engineHas(value string) demo.Condition {
	return func(ctx context.Context) error {
		found := engine()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		for _, container := range found.Spec.Template.Spec.Containers {
			for _, variable := range container.Env {
				if variable == (corev1.EnvVar{Name: "INDEX", Value: value}) {
					return nil
				}
			}
		}
		return fmt.Errorf("the Deployment does not have %q", value)
	}
}

func (s *scenario) engineScaledTo(replicas int32) demo.Condition {
	return func(ctx context.Context) error {
		found := engine()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if *found.Spec.Replicas != replicas {
			return fmt.Errorf("the Deployment has %d replicas, not %d", *found.Spec.Replicas, replicas)
		}
		return nil
	}
}

// engineRuns does what the controller of Deployments would do once the Pods are ready.
func (s *scenario) engineRuns(ctx context.Context) error {
	return s.reportEngine(`"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2`,
		`{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":""}`,
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":""}`)(ctx)
}

// reportEngine returns a step that writes counts and conditions into the status of the Deployment, for its current
// generation.
func (s *scenario) reportEngine(counts string, conditions ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		found := engine()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		status := fmt.Sprintf(`{"status":{"observedGeneration":%d,%s,"conditions":[%s]}}`,
			found.Generation, counts, strings.Join(conditions, ","))
		return s.Client.Status().Patch(ctx, found, client.RawPatch("application/merge-patch+json", []byte(status)))
	}
}
