package generator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The structs in this file are parts of a spec. Embed the ones that users need, with `json:",inline"`.
var (
	_ PlacementConfiguration     = (*PlacementSpec)(nil)
	_ KubeConfigReference        = (*ClientSpec)(nil)
	_ AbandonmentConfiguration   = (*ClientSpec)(nil)
	_ ImpersonationConfiguration = (*ImpersonationSpec)(nil)
	_ SuspensionConfiguration    = (*SuspensionSpec)(nil)
	_ RequeueConfiguration       = (*RequeueSpec)(nil)
	_ RetryConfiguration         = (*RetrySpec)(nil)
	_ TimeoutConfiguration       = (*TimeoutSpec)(nil)
	_ PolicyConfiguration        = (*PolicySpec)(nil)
	_ PrunePolicyConfiguration   = (*PolicySpec)(nil)
	_ TypeConfiguration          = (*TypeSpec)(nil)
	_ ReapplyConfiguration       = (*ReapplySpec)(nil)
)

// PlacementSpec lets users configure where a component is deployed, and under which name.
//
// +kubebuilder:object:generate=true
type PlacementSpec struct {
	// Namespace to deploy to. Default: the namespace of the resource.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name that the deployed objects are named after. Default: the name of the resource.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// GetDeploymentNamespace implements [PlacementConfiguration].
func (s *PlacementSpec) GetDeploymentNamespace() string {
	return orEmpty(s).Namespace
}

// GetDeploymentName implements [PlacementConfiguration].
func (s *PlacementSpec) GetDeploymentName() string {
	return orEmpty(s).Name
}

// ClientSpec lets users deploy a component to another cluster.
//
// +kubebuilder:object:generate=true
type ClientSpec struct {
	// KubeConfig says which cluster to deploy to. Default: the cluster of the resource.
	// +optional
	KubeConfig *KubeConfigSpec `json:"kubeConfig,omitempty"`
}

// KubeConfigSpec says where a kubeconfig is.
//
// +kubebuilder:object:generate=true
type KubeConfigSpec struct {
	// SecretRef refers to the Secret with the kubeconfig, in the namespace of the resource. The reconciler reads it
	// as itself, and not with the identity of the component.
	SecretRef SecretKeyReference `json:"secretRef" reference:"-"`
	// AbandonOnDeletion gives up the deployed objects when the resource is deleted and the Secret with the kubeconfig
	// does not exist. By default, the deletion then waits until the Secret exists again.
	// +optional
	AbandonOnDeletion bool `json:"abandonOnDeletion,omitempty"`
}

// GetKubeConfigSecret implements [KubeConfigReference].
func (s *ClientSpec) GetKubeConfigSecret() *SecretKeyReference {
	if s == nil || s.KubeConfig == nil {
		return nil
	}
	return &s.KubeConfig.SecretRef
}

// AbandonsOnDeletion implements [AbandonmentConfiguration].
func (s *ClientSpec) AbandonsOnDeletion() bool {
	return orEmpty(orEmpty(s).KubeConfig).AbandonOnDeletion
}

// ImpersonationSpec lets users configure the service account that a component is deployed with.
//
// +kubebuilder:object:generate=true
type ImpersonationSpec struct {
	// ServiceAccountName is the service account, in the namespace of the resource, that the component is deployed with.
	// Default: the user that the operator is configured with.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// GetImpersonationUser implements [ImpersonationConfiguration].
func (s *ImpersonationSpec) GetImpersonationUser() string {
	if s == nil || s.ServiceAccountName == "" {
		return ""
	}
	return serviceAccountWithoutNamespace + s.ServiceAccountName
}

// GetImpersonationGroups implements [ImpersonationConfiguration].
func (s *ImpersonationSpec) GetImpersonationGroups() []string {
	return nil
}

// SuspensionSpec lets users suspend a component.
//
// +kubebuilder:object:generate=true
type SuspensionSpec struct {
	// Suspend stops all work on the component, except for its deletion.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// IsSuspended implements [SuspensionConfiguration].
func (s *SuspensionSpec) IsSuspended() bool {
	return orEmpty(s).Suspend
}

// RequeueSpec lets users configure how often a component is reconciled.
//
// +kubebuilder:object:generate=true
type RequeueSpec struct {
	// RequeueInterval is how often the component is reconciled although nothing has happened. Default: 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	RequeueInterval *metav1.Duration `json:"requeueInterval,omitempty"`
}

// GetRequeueInterval implements [RequeueConfiguration].
func (s *RequeueSpec) GetRequeueInterval() time.Duration {
	return durationOf(orEmpty(s).RequeueInterval)
}

// RetrySpec lets users configure when something is tried again that does not exist yet.
//
// +kubebuilder:object:generate=true
type RetrySpec struct {
	// RetryInterval is when the component looks again for something that it needs. Default: the requeue interval.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
}

// GetRetryInterval implements [RetryConfiguration].
func (s *RetrySpec) GetRetryInterval() time.Duration {
	return durationOf(orEmpty(s).RetryInterval)
}

// TimeoutSpec lets users say how long a roll-out may take.
//
// +kubebuilder:object:generate=true
type TimeoutSpec struct {
	// Timeout is how long a roll-out may take before it counts as failed. Default: the requeue interval.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// GetTimeout implements [TimeoutConfiguration].
func (s *TimeoutSpec) GetTimeout() time.Duration {
	return durationOf(orEmpty(s).Timeout)
}

// PolicySpec lets users configure how objects are treated that have no annotation for it.
//
// +kubebuilder:object:generate=true
type PolicySpec struct {
	// AdoptionPolicy says what happens to an object that exists already. Default: never, it is left alone.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// UpdatePolicy says how an object is written again.
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletePolicy says what happens to an object that is no longer desired. Default: orphan for an object that was
	// adopted, delete for others.
	// +optional
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`
	// PrunePolicy says when an object is removed that is no longer desired.
	// +optional
	PrunePolicy PrunePolicy `json:"prunePolicy,omitempty"`
	// MissingNamespacesPolicy says what happens if the namespace of an object does not exist.
	// +optional
	MissingNamespacesPolicy MissingNamespacesPolicy `json:"missingNamespacesPolicy,omitempty"`
}

// GetAdoptionPolicy implements [PolicyConfiguration].
func (s *PolicySpec) GetAdoptionPolicy() AdoptionPolicy {
	return orEmpty(s).AdoptionPolicy
}

// GetUpdatePolicy implements [PolicyConfiguration].
func (s *PolicySpec) GetUpdatePolicy() UpdatePolicy {
	return orEmpty(s).UpdatePolicy
}

// GetDeletePolicy implements [PolicyConfiguration].
func (s *PolicySpec) GetDeletePolicy() DeletePolicy {
	return orEmpty(s).DeletePolicy
}

// GetPrunePolicy implements [PrunePolicyConfiguration].
func (s *PolicySpec) GetPrunePolicy() PrunePolicy {
	return orEmpty(s).PrunePolicy
}

// GetMissingNamespacesPolicy implements [PolicyConfiguration].
func (s *PolicySpec) GetMissingNamespacesPolicy() MissingNamespacesPolicy {
	return orEmpty(s).MissingNamespacesPolicy
}

// TypeSpec lets users name types that a component brings into the cluster by other means than its own objects.
//
// +kubebuilder:object:generate=true
type TypeSpec struct {
	// AdditionalManagedTypes are patterns of types that the component brings into the cluster, in addition to the types
	// that its objects define.
	// +optional
	// +listType=atomic
	AdditionalManagedTypes []TypePattern `json:"additionalManagedTypes,omitempty"`
}

// GetAdditionalManagedTypes implements [TypeConfiguration].
func (s *TypeSpec) GetAdditionalManagedTypes() []TypePattern {
	return orEmpty(s).AdditionalManagedTypes
}

// ReapplySpec lets users configure that objects are written although nothing seems to have changed.
//
// +kubebuilder:object:generate=true
type ReapplySpec struct {
	// ReapplyInterval is how often objects are written although nothing seems to have changed. Default: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	ReapplyInterval *metav1.Duration `json:"reapplyInterval,omitempty"`
}

// GetReapplyInterval implements [ReapplyConfiguration].
func (s *ReapplySpec) GetReapplyInterval() time.Duration {
	return durationOf(orEmpty(s).ReapplyInterval)
}

// orEmpty returns an empty struct for a nil pointer.
func orEmpty[T any](s *T) *T {
	if s == nil {
		return new(T)
	}
	return s
}

func durationOf(d *metav1.Duration) time.Duration {
	return orEmpty(d).Duration
}
