package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var cronJobVersion = batchv1.SchemeGroupVersion.WithKind("CronJob")

// cronJobs creates the Jobs of CronJobs. See "CronJob" in the Kubernetes documentation.
func cronJobs() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{cronJobKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			return decideCronJob(obj.(*batchv1.CronJob), controlled[*batchv1.Job](v, obj), now)
		},
	}
}

// decideCronJob creates a Job for the last time that has passed, deletes Jobs beyond the limits of the history and sets
// the status, see the Kubernetes API reference, CronJobSpec and CronJobStatus v1 batch. A schedule that cannot be read
// does nothing.
func decideCronJob(c *batchv1.CronJob, jobs []*batchv1.Job, now time.Time) decision {
	var d decision
	if c.DeletionTimestamp != nil {
		return d
	}
	next := c.DeepCopy()
	var active []*batchv1.Job
	ended := map[batchv1.JobConditionType][]*batchv1.Job{}
	for _, job := range jobs {
		switch {
		case jobCondition(&job.Status, batchv1.JobComplete) == corev1.ConditionTrue:
			ended[batchv1.JobComplete] = append(ended[batchv1.JobComplete], job)
			last := next.Status.LastSuccessfulTime
			if at := job.Status.CompletionTime; last == nil || last.Before(at) {
				next.Status.LastSuccessfulTime = at
			}
		case jobCondition(&job.Status, batchv1.JobFailed) == corev1.ConditionTrue:
			ended[batchv1.JobFailed] = append(ended[batchv1.JobFailed], job)
		default:
			active = append(active, job)
		}
	}
	d.add(history(ended[batchv1.JobComplete], ptr.Deref(c.Spec.SuccessfulJobsHistoryLimit, 3))...)
	d.add(history(ended[batchv1.JobFailed], ptr.Deref(c.Spec.FailedJobsHistoryLimit, 1))...)
	next.Status.Active = nil
	for _, job := range active {
		next.Status.Active = append(next.Status.Active, corev1.ObjectReference{
			Kind: "Job", APIVersion: "batch/v1", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
			ResourceVersion: job.ResourceVersion,
		})
	}
	// The version of an active Job is that of its start.
	for i := range next.Status.Active {
		for _, was := range c.Status.Active {
			if was.UID == next.Status.Active[i].UID {
				next.Status.Active[i] = was
			}
		}
	}
	if !ptr.Deref(c.Spec.Suspend, false) {
		d.add(runCronJob(&d, next, jobs, active, now)...)
	}
	d.add(changed(updateStatus, next, c)...)
	return d
}

// history deletes the oldest Jobs beyond a limit.
func history(jobs []*batchv1.Job, limit int32) []write {
	slices.SortStableFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var writes []write
	for _, job := range jobs[:max(0, len(jobs)-int(limit))] {
		if job.DeletionTimestamp == nil {
			writes = append(writes, deletion(job))
		}
	}
	return writes
}

// runCronJob creates the Job that is due. The decision gets the next time of the schedule.
func runCronJob(d *decision, c *batchv1.CronJob, all, active []*batchv1.Job, now time.Time) []write {
	schedule, err := parseSchedule(c)
	if err != nil {
		return nil
	}
	d.by(schedule.Next(now))
	since := c.CreationTimestamp.Time
	if last := c.Status.LastScheduleTime; last != nil && last.After(since) {
		since = last.Time
	}
	if deadline := c.Spec.StartingDeadlineSeconds; deadline != nil {
		if earliest := now.Add(-time.Duration(*deadline) * time.Second); earliest.After(since) {
			since = earliest
		}
	}
	var at time.Time
	for t := schedule.Next(since); !t.IsZero() && !t.After(now); t = schedule.Next(t) {
		at = t
	}
	if at.IsZero() || c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(active) > 0 {
		return nil
	}
	var writes []write
	if c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		for _, job := range active {
			if job.DeletionTimestamp == nil {
				writes = append(writes, deletion(job))
			}
		}
	}
	c.Status.LastScheduleTime = new(metav1.NewTime(at))
	job := jobOf(c, at)
	if slices.ContainsFunc(all, func(j *batchv1.Job) bool { return j.Name == job.Name }) {
		return nil
	}
	return append(writes, write{verb: create, object: job})
}

// parseSchedule reads the schedule of a CronJob. See "CronJob: Schedule syntax" in the Kubernetes documentation.
func parseSchedule(c *batchv1.CronJob) (cron.Schedule, error) {
	spec := c.Spec.Schedule
	if zone := ptr.Deref(c.Spec.TimeZone, ""); zone != "" {
		spec = fmt.Sprintf("TZ=%s %s", zone, spec)
	} else if !strings.Contains(spec, "TZ=") {
		spec = "TZ=UTC " + spec
	}
	return cron.ParseStandard(spec)
}

// jobOf returns the Job of a time.
func jobOf(c *batchv1.CronJob, at time.Time) *batchv1.Job {
	template := c.Spec.JobTemplate.DeepCopy()
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, at.Unix()/60),
			Labels: maps.Clone(template.Labels),
			Annotations: with(template.Annotations, batchv1.CronJobScheduledTimestampAnnotation,
				at.UTC().Format(time.RFC3339)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, cronJobVersion)},
		},
		Spec: template.Spec,
	}
}
