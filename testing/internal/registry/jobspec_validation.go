package registry

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of the Kubernetes API reference, JobSpec v1 batch.
const (
	maxParallelism   = 100_000
	maxFailedIndexes = 100_000
	manyCompletions  = 100_000
	maxWithMany      = 10_000
	maxPolicyRules   = 20
	maxExitCodes     = 255
	maxManagedBy     = 63
	maxIndexes       = 64 * 1024
	maxPodConditions = 20
)

func validateJobSpec(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := validateTemplate(&spec.Template, at.Child("template"))
	if policy := spec.Template.Spec.RestartPolicy; policy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(at.Child("template", "spec", "restartPolicy"),
			"valid values: \"OnFailure\", \"Never\""))
	}
	errs = append(errs, notNegative(at.Child("parallelism"), spec.Parallelism)...)
	errs = append(errs, notNegative(at.Child("completions"), spec.Completions)...)
	errs = append(errs, notNegative(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, notNegative(at.Child("backoffLimit"), spec.BackoffLimit)...)
	errs = append(errs, notNegative(at.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)...)
	errs = append(errs, notNegative(at.Child("backoffLimitPerIndex"), spec.BackoffLimitPerIndex)...)
	errs = append(errs, notNegative(at.Child("maxFailedIndexes"), spec.MaxFailedIndexes)...)
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(at.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if by := spec.ManagedBy; by != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(at.Child("managedBy"), *by)...)
		if len(*by) > maxManagedBy {
			errs = append(errs, field.TooLong(at.Child("managedBy"), "", maxManagedBy))
		}
	}
	if mode := spec.CompletionMode; mode != nil {
		errs = append(errs, supported(at.Child("completionMode"), *mode, batchv1.NonIndexedCompletion,
			batchv1.IndexedCompletion)...)
	}
	errs = append(errs, validateIndexes(spec, at)...)
	if spec.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(spec, at)...)
	}
	if policy := spec.PodReplacementPolicy; policy != nil && spec.PodFailurePolicy != nil {
		errs = append(errs, supported(at.Child("podReplacementPolicy"), *policy, batchv1.Failed)...)
	} else if policy != nil {
		errs = append(errs, supported(at.Child("podReplacementPolicy"), *policy, batchv1.Failed,
			batchv1.TerminatingOrFailed)...)
	}
	return errs
}

// validateIndexes validates what a job of indexes alone may have.
func validateIndexes(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !isIndexed(spec) {
		for name, is := range ordered(map[string]bool{
			"backoffLimitPerIndex": spec.BackoffLimitPerIndex != nil, "maxFailedIndexes": spec.MaxFailedIndexes != nil,
			"successPolicy": spec.SuccessPolicy != nil,
		}) {
			if is {
				errs = append(errs,
					field.Invalid(at.Child(name), field.OmitValueType{}, "requires indexed completion mode"))
			}
		}
		return errs
	}
	if spec.Completions == nil {
		return append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
	}
	completions := *spec.Completions
	maxParallel, maxFailed := int32(maxParallelism), min(completions, maxFailedIndexes)
	if completions > manyCompletions && spec.BackoffLimitPerIndex != nil {
		maxParallel, maxFailed = maxWithMany, maxWithMany
		if spec.MaxFailedIndexes == nil {
			errs = append(errs,
				field.Required(at.Child("maxFailedIndexes"), "must be specified of so many completions"))
		}
	}
	for _, number := range []struct {
		name    string
		value   *int32
		highest int32
	}{{"parallelism", spec.Parallelism, maxParallel}, {"maxFailedIndexes", spec.MaxFailedIndexes, maxFailed}} {
		if number.value != nil && *number.value > number.highest {
			errs = append(errs, field.Invalid(at.Child(number.name), *number.value,
				fmt.Sprintf("must be less than or equal to %d", number.highest)))
		}
	}
	if spec.SuccessPolicy != nil {
		errs = append(errs, validateSuccessPolicy(spec.SuccessPolicy.Rules, completions,
			at.Child("successPolicy", "rules"))...)
	}
	return errs
}

func validateSuccessPolicy(rules []batchv1.SuccessPolicyRule, completions int32, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rules) == 0 {
		errs = append(errs, field.Required(at, "at least one rules must be specified"))
	}
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(at, len(rules), maxPolicyRules))
	}
	for i, rule := range rules {
		path, highest := at.Index(i), completions
		if rule.SucceededCount == nil && rule.SucceededIndexes == nil {
			errs = append(errs, field.Required(path, "must have a count or indexes"))
		}
		if indexes := rule.SucceededIndexes; indexes != nil {
			total, ok := countIndexes(*indexes, completions)
			if !ok {
				errs = append(errs, field.Invalid(path.Child("succeededIndexes"), *indexes, "must be ordered indexes"))
			}
			if len(*indexes) > maxIndexes {
				errs = append(errs, field.TooLong(path.Child("succeededIndexes"), "", maxIndexes))
			}
			highest = min(highest, total)
		}
		errs = append(errs, between(path.Child("succeededCount"), rule.SucceededCount, 0, highest)...)
	}
	return errs
}

// countIndexes returns how many indexes there are in text such as "1,3-5". It reports false if that is no such text.
func countIndexes(text string, completions int32) (total int32, ok bool) {
	last := int64(math.MinInt64)
	if text == "" {
		return 0, true
	}
	for interval := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(interval, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.ParseInt(low, 10, 32)
		to, toErr := strconv.ParseInt(high, 10, 32)
		if err != nil || toErr != nil || to >= int64(completions) || from <= last || ranged && from >= to {
			return 0, false
		}
		total += int32(to - from + 1)
		last = to
	}
	return total, true
}

// validateFailurePolicy requires rules about exit codes or conditions of pods that are not started again.
func validateFailurePolicy(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy := spec.Template.Spec.RestartPolicy; policy == corev1.RestartPolicyOnFailure {
		errs = append(errs, field.Invalid(at.Child("template", "spec", "restartPolicy"), policy,
			"only \"Never\" is supported when podFailurePolicy is specified"))
	}
	at = at.Child("podFailurePolicy", "rules")
	rules := spec.PodFailurePolicy.Rules
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(at, len(rules), maxPolicyRules))
	}
	for i := range rules {
		rule, path := &rules[i], at.Index(i)
		errs = append(errs, oneOf(path.Child("action"), rule.Action, batchv1.PodFailurePolicyActionCount,
			batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob,
			batchv1.PodFailurePolicyActionIgnore)...)
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(path.Child("action"), rule.Action,
				"requires the backoffLimitPerIndex to be set"))
		}
		if (rule.OnExitCodes == nil) == (len(rule.OnPodConditions) == 0) {
			errs = append(errs, field.Invalid(path, field.OmitValueType{},
				"must specify one of onExitCodes and onPodConditions"))
		}
		if rule.OnExitCodes != nil {
			errs = append(errs, validateExitCodes(rule.OnExitCodes, &spec.Template.Spec, path.Child("onExitCodes"))...)
		}
		if len(rule.OnPodConditions) > maxPodConditions {
			errs = append(errs,
				field.TooMany(path.Child("onPodConditions"), len(rule.OnPodConditions), maxPodConditions))
		}
		for j, condition := range rule.OnPodConditions {
			path := path.Child("onPodConditions").Index(j)
			errs = append(errs, invalid(path.Child("type"), condition.Type,
				validation.IsQualifiedName(string(condition.Type)))...)
			errs = append(errs, oneOf(path.Child("status"), condition.Status, corev1.ConditionTrue,
				corev1.ConditionFalse, corev1.ConditionUnknown)...)
		}
	}
	return errs
}

// validateExitCodes requires codes in order, of a container of the pod.
func validateExitCodes(
	r *batchv1.PodFailurePolicyOnExitCodesRequirement, pod *corev1.PodSpec, at *field.Path,
) field.ErrorList {
	errs := oneOf(at.Child("operator"), r.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn,
		batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := r.ContainerName; name != nil && !slices.ContainsFunc(slices.Concat(pod.Containers, pod.InitContainers),
		func(c corev1.Container) bool { return c.Name == *name }) {
		errs = append(errs, field.Invalid(at.Child("containerName"), *name, "must be one of the containers"))
	}
	values := at.Child("values")
	if len(r.Values) == 0 {
		errs = append(errs, field.Invalid(values, r.Values, "at least one value is required"))
	}
	if len(r.Values) > maxExitCodes {
		errs = append(errs, field.TooMany(values, len(r.Values), maxExitCodes))
	}
	if !slices.IsSorted(r.Values) || len(slices.Compact(slices.Clone(r.Values))) < len(r.Values) {
		errs = append(errs, field.Invalid(values, r.Values, "must be ordered, each once"))
	}
	if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(r.Values, 0) {
		errs = append(errs, field.Invalid(values, r.Values, "must not have 0 for the In operator"))
	}
	return errs
}
