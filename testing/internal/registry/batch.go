package registry

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// completeJob sets the defaults of the Kubernetes API reference, JobSpec v1 batch. A job without labels has
// those of its template, unless it was given without.
func completeJob(job, old *batchv1.Job) {
	completeJobSpec(&job.Spec)
	setDefault(&job.Spec.ManualSelector, false)
	if old == nil && !*job.Spec.ManualSelector {
		selectPods(job)
	}
	if len(job.Labels) == 0 && (old == nil || len(old.Labels) > 0) {
		job.Labels = maps.Clone(job.Spec.Template.Labels)
	}
}

// selectPods selects the pods of the job by its UID, see "Specifying your own Pod selector" in the documentation of
// Job.
func selectPods(job *batchv1.Job) {
	for key, value := range jobLabels(job) {
		if _, ok := job.Spec.Template.Labels[key]; !ok {
			job.Spec.Template.Labels = with(job.Spec.Template.Labels, key, value)
		}
	}
	setDefault(&job.Spec.Selector, metav1.LabelSelector{})
	if _, ok := job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		job.Spec.Selector.MatchLabels = with(job.Spec.Selector.MatchLabels, batchv1.ControllerUidLabel, string(job.UID))
	}
}

// completeJobSpec sets the defaults of a job.
func completeJobSpec(spec *batchv1.JobSpec) {
	completePodSpec(&spec.Template.Spec)
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = ptr.To[int32](1)
	}
	setDefault(&spec.Parallelism, 1)
	if spec.BackoffLimitPerIndex != nil {
		setDefault(&spec.BackoffLimit, math.MaxInt32)
	}
	setDefault(&spec.BackoffLimit, 6)
	setDefault(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefault(&spec.Suspend, false)
	setDefault(&spec.PodReplacementPolicy, replacementPolicy(spec))
	completeFailures(spec)
}

// completeFailures sets the statuses of conditions, and drops what schedules the pods of a job together, which API
// servers do not have by default.
func completeFailures(spec *batchv1.JobSpec) {
	spec.Scheduling = nil
	if spec.PodFailurePolicy == nil {
		return
	}
	for _, rule := range spec.PodFailurePolicy.Rules {
		for i := range rule.OnPodConditions {
			setIfZero(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

func replacementPolicy(spec *batchv1.JobSpec) batchv1.PodReplacementPolicy {
	if spec.PodFailurePolicy != nil {
		return batchv1.Failed
	}
	return batchv1.TerminatingOrFailed
}

// completeCronJob sets the defaults of the Kubernetes API reference, CronJobSpec v1 batch. The template of the job
// gets only those of its pods, and of what they fail with.
func completeCronJob(c, _ *batchv1.CronJob) {
	completePodSpec(&c.Spec.JobTemplate.Spec.Template.Spec)
	completeFailures(&c.Spec.JobTemplate.Spec)
	setIfZero(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefault(&c.Spec.Suspend, false)
	setDefault(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefault(&c.Spec.FailedJobsHistoryLimit, 1)
}

// validateJob requires what the Kubernetes API reference requires, JobSpec v1 batch.
func validateJob(job, old *batchv1.Job) field.ErrorList {
	at, spec := field.NewPath("spec"), &job.Spec
	errs := validateJobSpec(spec, at)
	if spec.Selector == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""), notSelected(&spec.Template, at))
	} else {
		errs = append(errs, validateJobSelector(spec, at)...)
	}
	if old == nil && spec.Selector != nil && !isTrue(spec.ManualSelector) {
		errs = append(errs, validateOwnSelector(job, at)...)
	}
	if isIndexed(spec) && ptr.Deref(spec.Completions, 0) > 0 {
		if host := fmt.Sprintf("%s-%d", job.Name, *spec.Completions-1); len(labelName(host, false)) > 0 {
			errs = append(errs, field.Invalid(metadata.Child("name"), job.Name,
				"will not able to create pod with invalid DNS label: "+host))
		}
	}
	if old == nil {
		return errs
	}
	was := &old.Spec
	for _, f := range []struct {
		name     string
		now, was any
		mutable  bool
	}{
		{"completions", spec.Completions, was.Completions, isElastic(spec)},
		{"selector", spec.Selector, was.Selector, false},
		{"template", &spec.Template, &was.Template, isTrue(was.Suspend)},
		{"completionMode", spec.CompletionMode, was.CompletionMode, false},
		{"podFailurePolicy", spec.PodFailurePolicy, was.PodFailurePolicy, false},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex, was.BackoffLimitPerIndex, false},
		{"managedBy", spec.ManagedBy, was.ManagedBy, false},
		{"successPolicy", spec.SuccessPolicy, was.SuccessPolicy, false},
	} {
		if !f.mutable && !equality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, immutable(at.Child(f.name), f.now))
		}
	}
	if isTrue(was.Suspend) {
		errs = append(errs, validateSuspendedTemplate(&spec.Template, old, at.Child("template"))...)
	}
	return errs
}

// validateJobSelector lets a selector be empty.
func validateJobSelector(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := validateSelector(spec.Selector, at.Child("selector"))
	if matches, err := selects(spec.Selector, spec.Template.Labels); err == nil && !matches {
		errs = append(errs, notSelected(&spec.Template, at))
	}
	return errs
}

// jobLabels are what tells the pods of a job from others.
func jobLabels(job *batchv1.Job) map[string]string {
	return map[string]string{
		"controller-uid": string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
		"job-name": job.Name, batchv1.JobNameLabel: job.Name,
	}
}

// validateOwnSelector requires that the labels of the pods, and the selector, are those of the job.
func validateOwnSelector(job *batchv1.Job, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	own := jobLabels(job)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if got, path := job.Spec.Template.Labels[key], at.Child("template", "metadata", "labels"); got != own[key] {
			errs = append(errs, field.Invalid(path.Key(key), got, "must be '"+own[key]+"'"))
		}
	}
	if matches, err := selects(job.Spec.Selector, own); err == nil && !matches {
		errs = append(errs, field.Invalid(at.Child("selector"), job.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// validateSuspendedTemplate allows changes of where Pods run and of what their containers take, in a job that has no
// Pods, see "Mutable Scheduling Directives" and "Mutable Pod Resources" in the documentation.
func validateSuspendedTemplate(template *corev1.PodTemplateSpec, old *batchv1.Job, at *field.Path) field.ErrorList {
	started := old.Status.StartTime != nil && !slices.ContainsFunc(old.Status.Conditions,
		func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
		})
	allowed := old.Spec.Template.DeepCopy()
	if started || old.Status.Active > 0 {
		if !equality.Semantic.DeepEqual(template, allowed) {
			return field.ErrorList{immutable(at, template)}
		}
		return nil
	}
	now, was := &template.Spec, &allowed.Spec
	var nodes *corev1.NodeAffinity
	if now.Affinity != nil {
		nodes = now.Affinity.NodeAffinity
		setDefault(&was.Affinity, corev1.Affinity{})
	}
	if was.Affinity != nil {
		was.Affinity.NodeAffinity = nodes
	}
	if now.Affinity == nil && was.Affinity != nil && *was.Affinity == (corev1.Affinity{}) {
		was.Affinity = nil
	}
	// Labels and annotations may change, too.
	was.NodeSelector, was.Tolerations, was.SchedulingGates = now.NodeSelector, now.Tolerations, now.SchedulingGates
	for _, containers := range [][2][]corev1.Container{
		{now.Containers, was.Containers}, {now.InitContainers, was.InitContainers},
	} {
		if len(containers[0]) != len(containers[1]) {
			continue
		}
		for i, c := range containers[0] {
			if c.Name == containers[1][i].Name {
				containers[1][i].Resources = c.Resources
			}
		}
	}
	if !equality.Semantic.DeepEqual(now, was) {
		return field.ErrorList{immutable(at.Child("spec"), now)}
	}
	return nil
}

func isIndexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

// isElastic reports whether the job has as many completions as parallel pods, so that both may change, see "Elastic
// Indexed Jobs" in the documentation.
func isElastic(spec *batchv1.JobSpec) bool {
	return isIndexed(spec) && spec.Completions != nil && spec.Parallelism != nil &&
		*spec.Completions == *spec.Parallelism
}

// maxCronJobName leaves room for what the controller appends to make the name of a job, see "CronJob limitations" in
// the documentation.
const maxCronJobName = 52

// validateCronJob requires what the Kubernetes API reference requires, CronJobSpec v1 batch.
func validateCronJob(c, old *batchv1.CronJob) field.ErrorList {
	at, spec := field.NewPath("spec"), &c.Spec
	errs := validateJobSpec(&spec.JobTemplate.Spec, at.Child("jobTemplate", "spec"))
	if old == nil && len(c.Name) > maxCronJobName {
		errs = append(errs, field.Invalid(metadata.Child("name"), c.Name, "must be no more than 52 characters"))
	}
	switch {
	case spec.Schedule == "":
		errs = append(errs, field.Required(at.Child("schedule"), ""))
	case strings.Contains(spec.Schedule, "TZ") && (old == nil || !strings.Contains(old.Spec.Schedule, "TZ")):
		errs = append(errs, field.Invalid(at.Child("schedule"), spec.Schedule,
			"cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	default:
		errs = append(errs, validateSchedule(spec.Schedule, at.Child("schedule"))...)
	}
	if spec.TimeZone != nil {
		errs = append(errs, validateTimeZone(*spec.TimeZone, at.Child("timeZone"))...)
	}
	if job := &spec.JobTemplate.Spec; job.Selector != nil || isTrue(job.ManualSelector) {
		errs = append(errs, field.Invalid(at.Child("jobTemplate", "spec", "selector"), job.Selector,
			"`selector` will be auto-generated"))
	}
	errs = append(errs, notNegative(at.Child("startingDeadlineSeconds"), spec.StartingDeadlineSeconds)...)
	errs = append(errs, oneOf(at.Child("concurrencyPolicy"), spec.ConcurrencyPolicy, batchv1.AllowConcurrent,
		batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, notNegative(at.Child("successfulJobsHistoryLimit"), spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, notNegative(at.Child("failedJobsHistoryLimit"), spec.FailedJobsHistoryLimit)...)
	return errs
}

func validateSchedule(schedule string, at *field.Path) (errs field.ErrorList) {
	defer func() {
		// The parser panics if a schedule is only a time zone.
		if r := recover(); r != nil {
			errs = field.ErrorList{field.Invalid(at, schedule, fmt.Sprint(r))}
		}
	}()
	if _, err := cron.ParseStandard(schedule); err != nil {
		return field.ErrorList{field.Invalid(at, schedule, err.Error())}
	}
	return nil
}

// validateTimeZone requires a name of the database of time zones, but not that of the server's own.
func validateTimeZone(name string, at *field.Path) field.ErrorList {
	if name == "" || strings.EqualFold(name, "Local") {
		return field.ErrorList{field.Invalid(at, name,
			"timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")}
	}
	if _, err := time.LoadLocation(name); err != nil {
		return field.ErrorList{field.Invalid(at, name, err.Error())}
	}
	return nil
}
