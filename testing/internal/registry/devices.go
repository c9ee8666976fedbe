package registry

import (
	"cmp"

	resourcev1 "k8s.io/api/resource/v1"
)

// completeResourceClaim sets the defaults of the Kubernetes API reference, ResourceClaim v1 resource.k8s.io.
func completeResourceClaim(c, _ *resourcev1.ResourceClaim) { completeDevices(&c.Spec.Devices) }

func completeResourceClaimTemplate(t, _ *resourcev1.ResourceClaimTemplate) {
	completeDevices(&t.Spec.Spec.Devices)
}

func completeDevices(devices *resourcev1.DeviceClaim) {
	for i := range devices.Requests {
		r := &devices.Requests[i]
		if r.Exactly != nil {
			completeDeviceRequest(&r.Exactly.AllocationMode, &r.Exactly.Count, r.Exactly.Tolerations)
		}
		for i := range r.FirstAvailable {
			s := &r.FirstAvailable[i]
			completeDeviceRequest(&s.AllocationMode, &s.Count, s.Tolerations)
		}
	}
}

func completeDeviceRequest(
	mode *resourcev1.DeviceAllocationMode, count *int64, tolerations []resourcev1.DeviceToleration,
) {
	*mode = cmp.Or(*mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		*count = cmp.Or(*count, 1)
	}
	for i := range tolerations {
		tolerations[i].Operator = cmp.Or(tolerations[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}
