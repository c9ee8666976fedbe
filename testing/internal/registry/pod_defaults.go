package registry

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The defaults of this file are those that the Kubernetes API reference gives for the fields of Pod v1 core, Container
// v1 core, Probe v1 core and the kinds of volumes.

// completePod sets the defaults of a pod, but for those that admission plug-ins set.
func completePod(pod, old *corev1.Pod) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			completeRequests(&containers[i].Resources)
			for j := range containers[i].Ports {
				if port := &containers[i].Ports[j]; spec.HostNetwork {
					setIfZero(&port.HostPort, port.ContainerPort)
				}
			}
		}
	}
	if period := spec.TerminationGracePeriodSeconds; period != nil && *period < 0 {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
	if old == nil {
		completePodResources(spec)
	}
	setDefault(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	completePodSpec(spec)
	if old == nil {
		pod.Status.Phase = corev1.PodPending
		pod.Status.QOSClass = qosClass(spec)
		if len(spec.SchedulingGates) > 0 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
				Message:            "Scheduling is blocked due to non-empty scheduling gates",
				LastTransitionTime: pod.CreationTimestamp,
			})
		}
	}
}

// qosClass is the class of the documentation, "Pod Quality of Service Classes".
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	bestEffort, guaranteed := true, true
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := resources.Requests[name], resources.Limits[name]
				bestEffort = bestEffort && request.IsZero() && limit.IsZero()
				guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// completeRequests requests what is limited. It is done for pods alone, not for their templates.
func completeRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, ok := resources.Requests[name]; ok {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

// completePodResources requests for a pod as a whole what its containers request, or else what is limited, if something
// is limited.
func completePodResources(spec *corev1.PodSpec) {
	r := spec.Resources
	if r == nil || len(r.Limits) == 0 {
		return
	}
	requests := corev1.ResourceList{}
	for name, total := range totalRequests(spec) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			requests[name] = total
		}
	}
	for name, limit := range r.Limits {
		if _, ok := requests[name]; !ok {
			requests[name] = limit.DeepCopy()
		}
	}
	maps.Copy(requests, r.Requests)
	r.Requests = requests
}

// completePodSpec sets the defaults that pods and their templates have in common.
func completePodSpec(spec *corev1.PodSpec) {
	dropDisabled(spec)
	setIfZero(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setIfZero(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setIfZero(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setDefault(&spec.SecurityContext, corev1.PodSecurityContext{})
	setIfZero(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for i := range spec.InitContainers {
		completeContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		completeContainer(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		common := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		completeContainer(&common)
		spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(common)
	}
	for i := range spec.Volumes {
		completeVolume(&spec.Volumes[i].VolumeSource)
	}
}

// dropDisabled drops what API servers do not have by default, see "Feature Gates" in the documentation.
func dropDisabled(spec *corev1.PodSpec) {
	spec.SchedulingGroup, spec.EvictionResponders = nil, nil
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if l := containers[i].Lifecycle; l != nil {
				l.StopSignal = nil
				if *l == (corev1.Lifecycle{}) {
					containers[i].Lifecycle = nil
				}
			}
			for j := range containers[i].VolumeMounts {
				containers[i].VolumeMounts[j].BindMountOptions = nil
			}
		}
	}
}

func completeContainer(c *corev1.Container) {
	setIfZero(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setIfZero(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setIfZero(&c.ImagePullPolicy, pullPolicy(c.Image))
	for i := range c.Ports {
		setIfZero(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setIfZero(&from.FieldRef.APIVersion, "v1")
		}
	}
	completeProbe(c.LivenessProbe)
	completeProbe(c.ReadinessProbe)
	completeProbe(c.StartupProbe)
	if c.Lifecycle == nil {
		return
	}
	for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if handler != nil {
			completeHTTPGet(handler.HTTPGet)
		}
	}
}

// pullPolicy is Always for the tag latest, and for an image with neither tag nor digest, which means the same.
func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func completeProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	setIfZero(&probe.TimeoutSeconds, 1)
	setIfZero(&probe.PeriodSeconds, 10)
	setIfZero(&probe.SuccessThreshold, 1)
	setIfZero(&probe.FailureThreshold, 3)
	completeHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		probe.GRPC.Mode = nil
		setDefault(&probe.GRPC.Service, "")
	}
}

func completeHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	get.Protocol = nil
	setIfZero(&get.Path, "/")
	setIfZero(&get.Scheme, corev1.URISchemeHTTP)
}

func completeVolume(v *corev1.VolumeSource) {
	switch {
	case *v == corev1.VolumeSource{}:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case v.EmptyDir != nil:
		v.EmptyDir.Mode = nil
	case v.Secret != nil:
		setDefault(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setDefault(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setDefault(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		completeDownwardAPI(v.DownwardAPI.Items)
	case v.Projected != nil:
		completeProjected(v.Projected)
	case v.HostPath != nil:
		setDefault(&v.HostPath.Type, corev1.HostPathUnset)
	case v.AzureDisk != nil:
		setDefault(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefault(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		setDefault(&v.AzureDisk.FSType, "ext4")
		setDefault(&v.AzureDisk.ReadOnly, false)
	case v.RBD != nil:
		setIfZero(&v.RBD.RBDPool, "rbd")
		setIfZero(&v.RBD.RadosUser, "admin")
		setIfZero(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.ScaleIO != nil:
		setIfZero(&v.ScaleIO.StorageMode, "ThinProvisioned")
		setIfZero(&v.ScaleIO.FSType, "xfs")
	case v.ISCSI != nil:
		setIfZero(&v.ISCSI.ISCSIInterface, "default")
	case v.Image != nil:
		setIfZero(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		completeClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
}

func completeProjected(v *corev1.ProjectedVolumeSource) {
	setDefault(&v.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Sources {
		if s := v.Sources[i].DownwardAPI; s != nil {
			completeDownwardAPI(s.Items)
		}
		if s := v.Sources[i].ServiceAccountToken; s != nil {
			setDefault(&s.ExpirationSeconds, 60*60)
		}
	}
}

func completeDownwardAPI(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if ref := files[i].FieldRef; ref != nil {
			setIfZero(&ref.APIVersion, "v1")
		}
	}
}

// setIfZero sets a field that has no value.
func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// setDefault sets a field that is not there.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
