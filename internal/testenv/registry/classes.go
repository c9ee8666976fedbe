package registry

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// completePriorityClass sets the defaults of the Kubernetes API reference, PriorityClass v1 scheduling.k8s.io.
func completePriorityClass(c, _ *schedulingv1.PriorityClass) {
	setDefault(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// completeStorageClass sets the defaults of the Kubernetes API reference, StorageClass v1 storage.k8s.io.
func completeStorageClass(c, _ *storagev1.StorageClass) {
	setDefault(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	setDefault(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}
