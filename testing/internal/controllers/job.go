package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The pause before a Pod of a Job that failed is replaced, see "Jobs: Pod backoff failure policy" in the Kubernetes
// documentation.
const firstJobPause, longestJobPause = 10 * time.Second, 6 * time.Minute

var jobVersion = batchv1.SchemeGroupVersion.WithKind("Job")

// jobs runs the Pods of Jobs, and deletes Jobs a time after their end. See "Jobs" and "Automatic Cleanup for Finished
// Jobs" in the Kubernetes documentation. Policies for failed Pods and for success are not honored.
func jobs() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{jobKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			job := obj.(*batchv1.Job)
			if ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
				return decision{}
			}
			return newJobRun(job, controlled[*corev1.Pod](v, job), now).decide()
		},
	}
}

// jobRun is a Job with its Pods.
type jobRun struct {
	*batchv1.Job
	active            []*corev1.Pod
	succeeded, failed []*corev1.Pod
	// indexes are those of Pods that succeeded, and are active.
	indexes, taken map[int]bool
	restarts       int32
	now            time.Time
}

func newJobRun(job *batchv1.Job, pods []*corev1.Pod, now time.Time) *jobRun {
	j := &jobRun{Job: job, now: now, indexes: map[int]bool{}, taken: map[int]bool{}}
	for _, pod := range pods {
		index, _ := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			j.succeeded = append(j.succeeded, pod)
			j.indexes[index] = true
		case pod.Status.Phase == corev1.PodFailed:
			j.failed = append(j.failed, pod)
		case pod.DeletionTimestamp == nil:
			j.active = append(j.active, pod)
			j.taken[index] = true
		}
		for _, c := range pod.Status.ContainerStatuses {
			j.restarts += c.RestartCount
		}
	}
	return j
}

// end is how a Job ends; the zero value is that it goes on.
type end struct {
	kind            batchv1.JobConditionType
	reason, message string
}

// decide creates and deletes Pods, and sets the status, see the Kubernetes API reference, JobStatus v1 batch.
func (j *jobRun) decide() decision {
	if at, ended := finishedAt(j.Job); ended {
		return expire(j.Job, at, j.now)
	}
	var d decision
	if j.DeletionTimestamp != nil {
		return d
	}
	next := j.DeepCopy()
	suspended := ptr.Deref(j.Spec.Suspend, false)
	if next.Status.StartTime == nil && !suspended {
		next.Status.StartTime = new(metav1.NewTime(j.now))
	}
	j.count(&next.Status)
	how := j.end(&d, next)
	switch {
	case suspended:
		d.add(removeAll(j.active)...)
		next.Status.StartTime, next.Status.Active, next.Status.Ready = nil, 0, new(int32(0))
		j.setCondition(&next.Status, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
	case how.kind != "":
		d.add(removeAll(j.active)...)
		j.finish(&next.Status, how)
	default:
		if jobCondition(&next.Status, batchv1.JobSuspended) == corev1.ConditionTrue {
			j.setCondition(&next.Status, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		}
		d.add(j.step(&d)...)
	}
	d.add(changed(updateStatus, next, j.Job)...)
	return d
}

func (j *jobRun) count(status *batchv1.JobStatus) {
	ready := int32(0)
	for _, pod := range j.active {
		if _, ok := readySince(pod); ok {
			ready++
		}
	}
	status.Active, status.Ready = int32(len(j.active)), &ready
	status.Succeeded = max(status.Succeeded, int32(len(j.succeeded)))
	if j.indexed() {
		status.Succeeded = int32(len(j.indexes))
		status.CompletedIndexes = ranges(j.indexes, int(ptr.Deref(j.Spec.Completions, 0)))
	}
	status.Failed = max(status.Failed, int32(len(j.failed)))
	status.Terminating = new(int32(0))
	status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
}

func (j *jobRun) indexed() bool {
	return ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// end says whether the Job has ended. See "Jobs: Handling Pod and container failures" and "Job termination and cleanup"
// in the Kubernetes documentation.
func (j *jobRun) end(d *decision, next *batchv1.Job) end {
	limit := ptr.Deref(j.Spec.BackoffLimit, 6)
	restarted := j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure &&
		j.restarts > 0 && j.restarts >= limit
	if next.Status.Failed > limit || restarted {
		return end{
			batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit",
		}
	}
	if seconds := j.Spec.ActiveDeadlineSeconds; seconds != nil && next.Status.StartTime != nil {
		at := next.Status.StartTime.Add(time.Duration(*seconds) * time.Second)
		if !j.now.Before(at) {
			return end{
				batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline",
			}
		}
		d.by(at)
	}
	enough := j.Spec.Completions != nil && next.Status.Succeeded >= *j.Spec.Completions
	if enough || j.Spec.Completions == nil && next.Status.Succeeded > 0 && len(j.active) == 0 {
		return end{
			batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods",
		}
	}
	return end{}
}

// finish sets the conditions of a Job that has ended: that which tells the end before the Pods are gone, and the last.
func (j *jobRun) finish(status *batchv1.JobStatus, how end) {
	target := batchv1.JobSuccessCriteriaMet
	if how.kind == batchv1.JobFailed {
		target = batchv1.JobFailureTarget
		// The Pods that are deleted for it have failed, too.
		status.Failed += int32(len(j.active))
	}
	j.setCondition(status, target, corev1.ConditionTrue, how.reason, how.message)
	if len(j.active) > 0 {
		return
	}
	j.setCondition(status, how.kind, corev1.ConditionTrue, how.reason, how.message)
	if how.kind == batchv1.JobComplete {
		status.CompletionTime = new(metav1.NewTime(j.now))
	}
}

// step creates the Pods that are missing, or deletes those that are too many.
func (j *jobRun) step(d *decision) []write {
	wanted := int(ptr.Deref(j.Spec.Parallelism, 1))
	if j.Spec.Completions != nil {
		wanted = min(wanted, int(*j.Spec.Completions)-len(j.succeeded))
	} else if len(j.succeeded) > 0 {
		wanted = len(j.active)
	}
	if surplusOnes := len(j.active) - wanted; surplusOnes > 0 {
		return removeAll(surplus(j.active, surplusOnes))
	}
	if at := j.pauseEnds(); j.now.Before(at) && wanted > len(j.active) {
		d.by(at)
		return nil
	}
	var writes []write
	for index := 0; len(j.active)+len(writes) < wanted; index++ {
		pod := newPod(&j.Spec.Template, j.Job, jobVersion, j.Name+"-")
		if j.indexed() {
			if j.indexes[index] || j.taken[index] {
				continue
			}
			pod.GenerateName = fmt.Sprintf("%s-%d-", j.Name, index)
			pod.Annotations = with(pod.Annotations, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
			pod.Labels = with(pod.Labels, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
			pod.Spec.Hostname = fmt.Sprintf("%s-%d", j.Name, index)
		}
		writes = append(writes, write{verb: create, object: pod})
	}
	return writes
}

// pauseEnds is when a Pod that failed may be replaced: the pause doubles with each failure.
func (j *jobRun) pauseEnds() time.Time {
	var last time.Time
	for _, pod := range j.failed {
		for _, c := range pod.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(min(firstJobPause<<min(len(j.failed)-1, 10), longestJobPause))
}

// setCondition sets a condition.
func (j *jobRun) setCondition(
	s *batchv1.JobStatus, kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string,
) {
	at := metav1.NewTime(j.now)
	c := batchv1.JobCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at,
	}
	i := slices.IndexFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
	switch {
	case i < 0:
		s.Conditions = append(s.Conditions, c)
	case s.Conditions[i].Status != status:
		s.Conditions[i] = c
	}
}

func jobCondition(s *batchv1.JobStatus, kind batchv1.JobConditionType) corev1.ConditionStatus {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// finishedAt returns when a Job ended; ok is false if it has not.
func finishedAt(job *batchv1.Job) (at time.Time, ok bool) {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// expire deletes a Job that ended ttlSecondsAfterFinished ago.
func expire(job *batchv1.Job, ended, now time.Time) decision {
	if job.Spec.TTLSecondsAfterFinished == nil || job.DeletionTimestamp != nil {
		return decision{}
	}
	at := ended.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
	if now.Before(at) {
		return decision{next: at}
	}
	w := deletion(job)
	w.policy = new(metav1.DeletePropagationForeground)
	return decision{writes: []write{w}}
}

func removeAll(pods []*corev1.Pod) []write {
	var writes []write
	for _, pod := range pods {
		writes = append(writes, write{verb: remove, object: pod})
	}
	return writes
}

// ranges writes indexes as "1,3-5".
func ranges(indexes map[int]bool, n int) string {
	var parts []string
	for i := 0; i < n; i++ {
		if !indexes[i] {
			continue
		}
		last := i
		for indexes[last+1] {
			last++
		}
		switch last {
		case i:
			parts = append(parts, strconv.Itoa(i))
		case i + 1:
			parts = append(parts, strconv.Itoa(i), strconv.Itoa(last))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", i, last))
		}
		i = last
	}
	return strings.Join(parts, ",")
}
