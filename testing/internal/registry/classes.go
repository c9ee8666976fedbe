package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// completePriorityClass sets the defaults of the Kubernetes API reference, PriorityClass v1 scheduling.k8s.io.
func completePriorityClass(c, _ *schedulingv1.PriorityClass) {
	setDefault(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// maxPriority is that of the classes that users define, see "PriorityClass" in the documentation.
const maxPriority = 1_000_000_000

func validatePriorityClass(c, old *schedulingv1.PriorityClass) field.ErrorList {
	at := field.NewPath("value")
	var errs field.ErrorList
	if c.Value > maxPriority && !strings.HasPrefix(c.Name, "system-") {
		errs = append(errs, field.Forbidden(at, "maximum allowed value of a user defined priority is 1000000000"))
	}
	if policy := c.PreemptionPolicy; policy != nil {
		errs = append(errs, oneOf(field.NewPath("preemptionPolicy"), *policy, corev1.PreemptLowerPriority,
			corev1.PreemptNever)...)
	}
	if old == nil {
		return errs
	}
	if c.Value != old.Value {
		errs = append(errs, field.Forbidden(at, "may not be changed in an update"))
	}
	if !equality.Semantic.DeepEqual(c.PreemptionPolicy, old.PreemptionPolicy) {
		errs = append(errs, immutable(field.NewPath("preemptionPolicy"), c.PreemptionPolicy))
	}
	return errs
}

// validateIngressClass requires what the Kubernetes API reference requires, IngressClassSpec v1 networking.k8s.io.
func validateIngressClass(c, old *networkingv1.IngressClass) field.ErrorList {
	at := field.NewPath("spec", "controller")
	if c.Spec.Controller == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validation.IsDomainPrefixedPath(at, c.Spec.Controller)
	if len(c.Spec.Controller) > maxController {
		errs = append(errs, field.TooLong(at, "", maxController))
	}
	if c.Spec.Parameters != nil {
		errs = append(errs, validateClassParameters(c.Spec.Parameters, field.NewPath("spec", "parameters"))...)
	}
	if old != nil && c.Spec.Controller != old.Spec.Controller {
		errs = append(errs, immutable(at, c.Spec.Controller))
	}
	return errs
}

const maxController = 250

// validateClassParameters requires a namespace if the scope is that of one.
func validateClassParameters(p *networkingv1.IngressClassParametersReference, at *field.Path) field.ErrorList {
	errs := validateReferenceTo(p.APIGroup, p.Kind, p.Name, at)
	scope := ptr.Deref(p.Scope, "")
	errs = append(errs, oneOf(at.Child("scope"), scope, networkingv1.IngressClassParametersReferenceScopeCluster,
		networkingv1.IngressClassParametersReferenceScopeNamespace)...)
	switch namespaced := scope == networkingv1.IngressClassParametersReferenceScopeNamespace; {
	case namespaced && p.Namespace == nil:
		errs = append(errs, field.Required(at.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	case namespaced:
		errs = append(errs, invalid(at.Child("namespace"), *p.Namespace, labelName(*p.Namespace, false))...)
	case p.Namespace != nil:
		errs = append(errs, field.Forbidden(at.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	}
	return errs
}

// completeIngressClass sets the defaults of the Kubernetes API reference, IngressClassParametersReference v1
// networking.k8s.io.
func completeIngressClass(c, _ *networkingv1.IngressClass) {
	if c.Spec.Parameters != nil {
		setDefault(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

// completeDriver sets the defaults of the Kubernetes API reference, CSIDriver v1 storage.k8s.io.
func completeDriver(d, _ *storagev1.CSIDriver) {
	setDefault(&d.Spec.AttachRequired, true)
	setDefault(&d.Spec.PodInfoOnMount, false)
	setDefault(&d.Spec.StorageCapacity, false)
	setDefault(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	setDefault(&d.Spec.RequiresRepublish, false)
	setDefault(&d.Spec.SELinuxMount, false)
	setDefault(&d.Spec.PreventPodSchedulingIfMissing, false)
	if len(d.Spec.VolumeLifecycleModes) == 0 {
		d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

// completeStorageClass sets the defaults of the Kubernetes API reference, StorageClass v1 storage.k8s.io.
func completeStorageClass(c, _ *storagev1.StorageClass) {
	setDefault(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	setDefault(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func validateProvisioner(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return required(at, name)
	}
	return invalid(at, name, validation.IsQualifiedName(strings.ToLower(name)))
}

// Limits of "Storage Classes" in the documentation.
const (
	maxParameters     = 512
	maxParameterBytes = 256 * 1024
)

func validateParameters(parameters map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range parameters {
		size += len(key) + len(value)
	}
	if len(parameters) > maxParameters || size > maxParameterBytes {
		errs = append(errs, field.TooLong(at, "", maxParameterBytes))
	}
	if _, ok := parameters[""]; ok {
		errs = append(errs, field.Invalid(at, "", "field can not be empty."))
	}
	return errs
}

// validateTopologies requires terms that differ, each with keys that differ.
func validateTopologies(terms []corev1.TopologySelectorTerm, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	// An API server finds that a term without expressions is one too many.
	seen := []map[string]sets.Set[string]{}
	for i, term := range terms {
		keys := map[string]sets.Set[string]{}
		path := at.Index(i).Child("matchLabelExpressions")
		for j, r := range term.MatchLabelExpressions {
			values := sets.New(r.Values...)
			if len(values) == 0 {
				errs = append(errs, field.Required(path.Index(j).Child("values"), ""))
			}
			if len(values) < len(r.Values) {
				errs = append(errs, field.Duplicate(path.Index(j).Child("values"), r.Values))
			}
			errs = append(errs, metav1validation.ValidateLabelName(r.Key, path.Index(j).Child("key"))...)
			if _, ok := keys[r.Key]; ok {
				errs = append(errs, field.Duplicate(path.Index(j).Child("key"), r.Key))
			}
			keys[r.Key] = values
		}
		if len(keys) == 0 || slices.ContainsFunc(seen, func(other map[string]sets.Set[string]) bool {
			return equality.Semantic.DeepEqual(keys, other)
		}) {
			errs = append(errs, field.Duplicate(path, ""))
		}
		seen = append(seen, keys)
	}
	return errs
}

func validateStorageClass(c, old *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateProvisioner(c.Provisioner, field.NewPath("provisioner"))...)
	errs = append(errs, validateParameters(c.Parameters, field.NewPath("parameters"))...)
	errs = append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
	if policy := c.ReclaimPolicy; policy != nil {
		errs = append(errs, supported(field.NewPath("reclaimPolicy"), *policy, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	if mode := c.VolumeBindingMode; mode != nil {
		errs = append(errs, supported(field.NewPath("volumeBindingMode"), *mode, storagev1.VolumeBindingImmediate,
			storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	if old == nil {
		return errs
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"parameters", c.Parameters, old.Parameters},
		{"provisioner", c.Provisioner, old.Provisioner},
		{"reclaimPolicy", c.ReclaimPolicy, old.ReclaimPolicy},
		{"volumeBindingMode", c.VolumeBindingMode, old.VolumeBindingMode},
	} {
		if !equality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, immutable(field.NewPath(f.name), f.now))
		}
	}
	return errs
}
