package controllers

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations and finalizers of claims and volumes, see "Persistent Volumes" and "Well-Known Labels, Annotations
// and Taints" in the Kubernetes documentation.
const (
	boundAnnotation        = "pv.kubernetes.io/bind-completed"
	byControllerAnnotation = "pv.kubernetes.io/bound-by-controller"
	provisionedAnnotation  = "pv.kubernetes.io/provisioned-by"
	claimFinalizer         = "kubernetes.io/pvc-protection"
	volumeFinalizer        = "kubernetes.io/pv-protection"
	provisioner            = "simulation.espalier.dev"
)

// claims binds claims to volumes. See "Persistent Volumes" in the Kubernetes documentation. A volume that is there and
// fits is taken first. Otherwise one is made, unless the claim asks for the empty class. A claim of a class that waits
// for a consumer is bound when a Pod that uses it is on a node; a class that does not exist binds at once.
func claims() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{claimKind},
		decide: func(v *view, _ key, obj client.Object, _ time.Time) decision {
			claim := obj.(*corev1.PersistentVolumeClaim)
			volumes := append(marked[*corev1.PersistentVolume](v, mark{kind: volumeKind, by: byClaim}),
				marked[*corev1.PersistentVolume](v, mark{volumeKind, "", byClaim, claim.Namespace, claim.Name})...)
			return decideClaim(claim, volumes, classOf(claim, list[*storagev1.StorageClass](v, classKind, "")),
				usersOf(v, claim))
		},
		concerns: concernsClaim,
	}
}

// concernsClaim returns the claims that a Pod uses or a volume is for, and all claims for a new volume or class.
func concernsClaim(v *view, k key, obj client.Object) []key {
	var all []key
	switch obj := obj.(type) {
	case *corev1.Pod:
		for _, volume := range obj.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				all = append(all, key{claimKind, obj.Namespace, volume.PersistentVolumeClaim.ClaimName})
			}
		}
	case *corev1.PersistentVolume:
		if ref := obj.Spec.ClaimRef; ref != nil {
			return []key{{claimKind, ref.Namespace, ref.Name}}
		}
		return v.keys(claimKind, "")
	case *storagev1.StorageClass:
		return v.keys(claimKind, "")
	}
	return all
}

// classOf returns the class of a claim, the default class if it names none; nil if it is not there.
func classOf(claim *corev1.PersistentVolumeClaim, classes []*storagev1.StorageClass) *storagev1.StorageClass {
	for _, class := range classes {
		byDefault := class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
		name := claim.Spec.StorageClassName
		if name == nil && byDefault || name != nil && *name == class.Name {
			return class
		}
	}
	return nil
}

// usersOf returns the Pods that use a claim and have not ended.
func usersOf(v *view, claim *corev1.PersistentVolumeClaim) []*corev1.Pod {
	using := mark{podKind, claim.Namespace, byClaim, claim.Namespace, claim.Name}
	return slices.DeleteFunc(marked[*corev1.Pod](v, using), isFinished)
}

// decideClaim protects a claim from deletion while Pods use it, binds it, and sets its status, see the Kubernetes API
// reference, PersistentVolumeClaimStatus v1 core.
func decideClaim(
	claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, class *storagev1.StorageClass,
	users []*corev1.Pod,
) decision {
	next := claim.DeepCopy()
	protected := slices.Index(claim.Finalizers, claimFinalizer)
	switch {
	case claim.DeletionTimestamp != nil:
		if protected >= 0 && len(users) == 0 {
			next.Finalizers = slices.Delete(next.Finalizers, protected, protected+1)
			return decision{writes: []write{{verb: update, object: next}}}
		}
		return decision{}
	case protected < 0:
		next.Finalizers = append(next.Finalizers, claimFinalizer)
		return decision{writes: []write{{verb: update, object: next}}}
	}
	volume := volumeFor(claim, volumes)
	switch {
	case volume == nil && claim.Spec.VolumeName != "":
		if claim.Status.Phase == corev1.ClaimBound {
			next.Status.Phase = corev1.ClaimLost
		}
		return decision{writes: changed(updateStatus, next, claim)}
	case volume == nil:
		return decision{writes: provision(claim, class, users)}
	case volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "":
		taken := volume.DeepCopy()
		taken.Spec.ClaimRef = referenceTo(claim)
		taken.Annotations = with(taken.Annotations, byControllerAnnotation, "yes")
		return decision{writes: []write{{verb: update, object: taken}}}
	case claim.Spec.VolumeName == "" || claim.Annotations[boundAnnotation] == "":
		next.Spec.VolumeName = volume.Name
		next.Annotations = with(next.Annotations, boundAnnotation, "yes")
		next.Annotations = with(next.Annotations, byControllerAnnotation, "yes")
		return decision{writes: []write{{verb: update, object: next}}}
	}
	next.Status.Phase = corev1.ClaimBound
	next.Status.AccessModes, next.Status.Capacity = volume.Spec.AccessModes, volume.Spec.Capacity
	return decision{writes: changed(updateStatus, next, claim)}
}

// volumeFor returns the volume that is bound to a claim, or the smallest one that fits; nil if there is none.
func volumeFor(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) *corev1.PersistentVolume {
	var smallest *corev1.PersistentVolume
	for _, volume := range volumes {
		ref := volume.Spec.ClaimRef
		if ref != nil && ref.UID == claim.UID {
			return volume
		}
		if ref != nil && (ref.UID != "" || ref.Namespace != claim.Namespace || ref.Name != claim.Name) ||
			!holds(volume, claim) || volume.DeletionTimestamp != nil {
			continue
		}
		if smallest == nil || volume.Spec.Capacity.Storage().Cmp(*smallest.Spec.Capacity.Storage()) < 0 {
			smallest = volume
		}
	}
	return smallest
}

// holds reports whether a volume is as a claim asks for.
func holds(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if name := claim.Spec.VolumeName; name != "" {
		return name == volume.Name
	}
	if volume.Spec.StorageClassName != ptr.Deref(claim.Spec.StorageClassName, "") {
		return false
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			return false
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	if claim.Spec.Selector != nil && (err != nil || !selector.Matches(labelsOf(volume))) {
		return false
	}
	return volume.Spec.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0
}

// provision makes a volume for a claim.
func provision(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, users []*corev1.Pod) []write {
	onNode := slices.ContainsFunc(users, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	policy := corev1.PersistentVolumeReclaimDelete
	if class != nil {
		waits := ptr.Deref(class.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer
		if waits && !onNode || class.Provisioner == "kubernetes.io/no-provisioner" {
			return nil
		}
		policy = ptr.Deref(class.ReclaimPolicy, policy)
	}
	if name := claim.Spec.StorageClassName; name != nil && *name == "" {
		return nil
	}
	return []write{{verb: create, object: &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{provisionedAnnotation: provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			StorageClassName: ptr.Deref(claim.Spec.StorageClassName, ""), VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: policy, ClaimRef: referenceTo(claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: provisioner, VolumeHandle: string(claim.UID),
			}},
		},
	}}}
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		ResourceVersion: claim.ResourceVersion,
	}
}

// volumes sets the phases of volumes, and deletes those that were made for a claim that is gone. See "Persistent
// Volumes: Reclaiming" in the Kubernetes documentation.
func volumes() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{volumeKind},
		decide: func(v *view, _ key, obj client.Object, _ time.Time) decision {
			volume := obj.(*corev1.PersistentVolume)
			var claim *corev1.PersistentVolumeClaim
			if ref := volume.Spec.ClaimRef; ref != nil {
				claim, _ = get[*corev1.PersistentVolumeClaim](v, claimKind, ref.Namespace, ref.Name)
			}
			return decideVolume(volume, claim)
		},
		concerns: func(v *view, _ key, obj client.Object) []key {
			claim, ok := obj.(*corev1.PersistentVolumeClaim)
			if !ok {
				return nil
			}
			return []key{{volumeKind, "", claim.Spec.VolumeName}, {volumeKind, "", "pvc-" + string(claim.UID)}}
		},
	}
}

// decideVolume protects a volume from deletion while it is bound, and sets its phase. The claim is nil if it is not
// there.
func decideVolume(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) decision {
	next := volume.DeepCopy()
	if volume.DeletionTimestamp != nil {
		protected := slices.Index(volume.Finalizers, volumeFinalizer)
		if protected < 0 || claim != nil && volume.Status.Phase == corev1.VolumeBound {
			return decision{}
		}
		next.Finalizers = slices.Delete(next.Finalizers, protected, protected+1)
		return decision{writes: []write{{verb: update, object: next}}}
	}
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		next.Status.Phase = corev1.VolumeAvailable
	case claim == nil || claim.UID != ref.UID:
		next.Status.Phase = corev1.VolumeReleased
		if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			return decision{writes: []write{{verb: remove, object: volume, absent: []owner{{
				key{claimKind, ref.Namespace, ref.Name}, ref.UID,
			}}}}}
		}
	default:
		next.Status.Phase = corev1.VolumeBound
	}
	return decision{writes: changed(updateStatus, next, volume)}
}
