package registry

import (
	"maps"
	"math"
	"slices"
	"strings"

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
	for _, label := range []struct{ key, value string }{
		{"controller-uid", string(job.UID)},
		{"job-name", job.Name},
		{batchv1.ControllerUidLabel, string(job.UID)},
		{batchv1.JobNameLabel, job.Name},
	} {
		job.Spec.Template.Labels = with(job.Spec.Template.Labels, label.key, label.value)
	}
	setDefault(&job.Spec.Selector, metav1.LabelSelector{})
	job.Spec.Selector.MatchLabels = with(job.Spec.Selector.MatchLabels, batchv1.ControllerUidLabel, string(job.UID))
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
// gets only those of its pods.
func completeCronJob(c, _ *batchv1.CronJob) {
	completePodSpec(&c.Spec.JobTemplate.Spec.Template.Spec)
	setIfZero(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefault(&c.Spec.Suspend, false)
	setDefault(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefault(&c.Spec.FailedJobsHistoryLimit, 1)
}

// validateJob requires what the Kubernetes API reference requires, JobSpec v1 batch.
func validateJob(job, old *batchv1.Job) field.ErrorList {
	at, spec := field.NewPath("spec"), &job.Spec
	errs := validateJobSpec(spec, at)
	errs = append(errs, validateSelected(spec.Selector, &spec.Template, at)...)
	if spec.Selector != nil && !isTrue(spec.ManualSelector) && !equality.Semantic.DeepEqual(spec.Selector,
		&metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}) {
		errs = append(errs, field.Invalid(at.Child("selector"), spec.Selector, "`selector` not auto-generated"))
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

func validateJobSpec(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := validateTemplate(&spec.Template, at.Child("template"))
	if policy := spec.Template.Spec.RestartPolicy; policy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(at.Child("template", "spec", "restartPolicy"),
			"valid values: \"OnFailure\", \"Never\""))
	}
	if isIndexed(spec) && spec.Completions == nil {
		errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
	}
	errs = append(errs, notNegative(at.Child("parallelism"), spec.Parallelism)...)
	errs = append(errs, notNegative(at.Child("completions"), spec.Completions)...)
	errs = append(errs, notNegative(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, notNegative(at.Child("backoffLimit"), spec.BackoffLimit)...)
	errs = append(errs, notNegative(at.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)...)
	return errs
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
	case !isSchedule(spec.Schedule):
		errs = append(errs, field.Invalid(at.Child("schedule"), spec.Schedule, "must have five fields, or be a macro"))
	}
	errs = append(errs, notNegative(at.Child("startingDeadlineSeconds"), spec.StartingDeadlineSeconds)...)
	errs = append(errs, oneOf(at.Child("concurrencyPolicy"), spec.ConcurrencyPolicy, batchv1.AllowConcurrent,
		batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, notNegative(at.Child("successfulJobsHistoryLimit"), spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, notNegative(at.Child("failedJobsHistoryLimit"), spec.FailedJobsHistoryLimit)...)
	return errs
}

// isSchedule reports whether the schedule has the form that the documentation of CronJob describes; what is in its
// fields is not checked.
func isSchedule(schedule string) bool {
	return strings.HasPrefix(schedule, "@") || len(strings.Fields(schedule)) == 5
}
