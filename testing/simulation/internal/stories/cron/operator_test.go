package cron_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// controllerIndex has Jobs by the name of the CronJob that controls them.
	controllerIndex = ".metadata.controller"
	scheduledAt     = "batch.example.com/scheduled-at"
)

// operator runs the Jobs of each CronJob.
func operator(ctx context.Context, mgr ctrl.Manager) error {
	return (&Reconciler{mgr.GetClient()}).SetupWithManager(ctx, mgr)
}

// Reconciler runs the Jobs of a CronJob.
type Reconciler struct{ client.Client }

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, controllerIndex, controllerOf)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&CronJob{}).Owns(&batchv1.Job{}).Complete(r)
}

// controllerOf returns the name of the CronJob that controls a Job.
func controllerOf(job client.Object) []string {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.APIVersion != group.String() || owner.Kind != "CronJob" {
		return nil
	}
	return []string{owner.Name}
}

// Jobs of a CronJob, by what became of them.
type jobs struct{ active, succeeded, failed []*batchv1.Job }

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	resource := &CronJob{}
	if err := r.Get(ctx, request.NamespacedName, resource); err != nil || resource.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + resource.Spec.Schedule)
	if err != nil {
		return ctrl.Result{}, nil
	}
	found, last, err := r.find(ctx, resource)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, resource, found.active, last); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.forget(ctx, found.succeeded, *resource.Spec.Succeeded); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.forget(ctx, found.failed, *resource.Spec.Failed); err != nil {
		return ctrl.Result{}, err
	}
	if resource.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	now := time.Now()
	if at := missed(schedule, resource, now); !at.IsZero() {
		if err := r.run(ctx, resource, found.active, at); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: schedule.Next(now).Sub(now)}, nil
}

// find returns the Jobs of a CronJob, and for when the last one was.
func (r *Reconciler) find(ctx context.Context, resource *CronJob) (jobs, *metav1.Time, error) {
	var list batchv1.JobList
	err := r.List(ctx, &list, client.InNamespace(resource.Namespace), client.MatchingFields{
		controllerIndex: resource.Name,
	})
	var found jobs
	last := resource.Status.LastScheduleTime
	for i := range list.Items {
		job := &list.Items[i]
		if at, err := time.Parse(time.RFC3339, job.Annotations[scheduledAt]); err == nil &&
			(last == nil || last.Time.Before(at)) {
			last = new(metav1.NewTime(at))
		}
		switch ended(job) {
		case batchv1.JobComplete:
			found.succeeded = append(found.succeeded, job)
		case batchv1.JobFailed:
			found.failed = append(found.failed, job)
		default:
			found.active = append(found.active, job)
		}
	}
	return found, last, err
}

func ended(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}

// report writes the status if it has changed.
func (r *Reconciler) report(ctx context.Context, resource *CronJob, active []*batchv1.Job, last *metav1.Time) error {
	before := resource.Status
	resource.Status = CronJobStatus{LastScheduleTime: last}
	for _, job := range active {
		resource.Status.Active = append(resource.Status.Active, corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		})
	}
	slices.SortFunc(resource.Status.Active, func(a, b corev1.ObjectReference) int {
		return cmp.Compare(a.Name, b.Name)
	})
	if last.Equal(before.LastScheduleTime) && reflect.DeepEqual(before.Active, resource.Status.Active) {
		return nil
	}
	return r.Status().Update(ctx, resource)
}

// forget deletes the oldest Jobs beyond a limit.
func (r *Reconciler) forget(ctx context.Context, ended []*batchv1.Job, limit int) error {
	slices.SortFunc(ended, func(a, b *batchv1.Job) int {
		return cmp.Compare(a.Annotations[scheduledAt], b.Annotations[scheduledAt])
	})
	return r.delete(ctx, ended[:max(0, len(ended)-limit)])
}

func (r *Reconciler) delete(ctx context.Context, all []*batchv1.Job) error {
	for _, job := range all {
		err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// missed returns the last time of the schedule for which there was no Job; zero if there is none.
func missed(schedule cron.Schedule, resource *CronJob, now time.Time) time.Time {
	since := resource.CreationTimestamp.Time
	if last := resource.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	var at time.Time
	for next := schedule.Next(since); !next.After(now); next = schedule.Next(next) {
		at = next
	}
	return at
}

// run creates the Job of a time, as far as active ones allow that.
func (r *Reconciler) run(ctx context.Context, resource *CronJob, active []*batchv1.Job, at time.Time) error {
	switch {
	case resource.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(active) > 0:
		return nil
	case resource.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
		if err := r.delete(ctx, active); err != nil {
			return err
		}
	}
	job := &batchv1.Job{Spec: *resource.Spec.JobTemplate.Spec.DeepCopy()}
	job.Namespace, job.Name = resource.Namespace, fmt.Sprintf("%s-%d", resource.Name, at.Unix())
	job.Annotations = map[string]string{scheduledAt: at.UTC().Format(time.RFC3339)}
	if err := controllerutil.SetControllerReference(resource, job, r.Scheme()); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.Create(ctx, job))
}
