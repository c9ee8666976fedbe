package cron_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/documented"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/testing/simulation"
)

var (
	scheme    = newScheme()
	lastAt    = time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)
	suspended = func() *CronJob {
		suspended := newCronJob("suspended", batchv1.ForbidConcurrent)
		suspended.UID = "suspended"
		suspended.Spec.Suspend, suspended.Spec.Succeeded, suspended.Spec.Failed = true, new(1), new(1)
		suspended.Status.LastScheduleTime = new(metav1.NewTime(lastAt))
		return suspended
	}()
)

// succeeded returns a Job of a CronJob that has succeeded.
func succeeded(owner *CronJob, at time.Time) *batchv1.Job {
	job := &batchv1.Job{Spec: *owner.Spec.JobTemplate.Spec.DeepCopy()}
	job.Namespace, job.Name = owner.Namespace, owner.Name+"-"+at.Format("1504")
	job.Annotations = map[string]string{scheduledAt: at.Format(time.RFC3339)}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if err := controllerutil.SetControllerReference(owner, job, scheme); err != nil {
		panic(err) // The scheme has the type.
	}
	return job
}

func TestReconcileInMemory(t *testing.T) {
	builder := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&batchv1.Job{}, controllerIndex, controllerOf)
	for _, definition := range simulation.ReadDefinitions(t, "testdata/crd") {
		builder.WithObjects(definition)
	}
	r := &Reconciler{Client: builder.Build()}
	each := newCronJob("each", batchv1.ForbidConcurrent)
	if err := r.Create(t.Context(), each); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(each)})
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("got %v, %v, want another request at the next time of the schedule", result, err)
	}
}

func TestReconcile(t *testing.T) {
	rtesting.RootTests{
		"the oldest Job goes": {
			Request: ctrl.Request{NamespacedName: client.ObjectKeyFromObject(suspended)},
			GivenObjects: []client.Object{
				suspended, succeeded(suspended, lastAt), succeeded(suspended, lastAt.Add(-5*time.Minute)),
			},
			GivenIndexes: []rtesting.Index{{
				Object: &batchv1.Job{}, Field: controllerIndex, Extract: controllerOf,
			}},
			ExpectDeletes: []rtesting.DeleteRef{{
				Group:             "batch",
				Kind:              "Job",
				Namespace:         "default",
				Name:              "suspended-1200",
				PropagationPolicy: new(metav1.DeletionPropagation("Background")),
			}},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return &Reconciler{Client: c}
	})
}

func TestOperator(t *testing.T) {
	options := simulation.Options{
		Operator:    operator,
		Scheme:      scheme,
		Definitions: simulation.ReadDefinitions(t, "testdata/crd"),
		Rules:       simulation.ReadRules(t, "testdata/role.yaml"),
	}
	simulation.RunFaults(t, options, func(w *simulation.World) {
		each := newCronJob("each", batchv1.ForbidConcurrent)
		w.Create(each)
		w.Pass(21 * time.Minute)
		w.Update(each, func() { each.Spec.Suspend = true })
		w.Rest()
		if jobs := jobsOf(w, "each"); jobs != 2 {
			w.Errorf("%d Jobs are kept, want 2", jobs)
		}
	})
}

func TestAnyCronJob(t *testing.T) {
	options := simulation.Options{
		Operator: operator, Scheme: scheme, Definitions: simulation.ReadDefinitions(t, "testdata/crd"),
	}
	template := newCronJob("any", batchv1.AllowConcurrent).Spec.JobTemplate
	simulation.Explore(t, options, simulation.Exploration{
		Resource: &CronJob{},
		Hints: simulation.Hints{
			".spec.schedule":    {"10 * * * *", "40 * * * *"},
			".spec.jobTemplate": {template},
		},
		Polls:     true, // when the schedule says so
		Remembers: true, // which Jobs there are depends on what the schedule was
	})
}

func TestDocumented(t *testing.T) {
	documented.Check(t, "existing_test.go", "../../../../../docs/existing-operators.md")
}
