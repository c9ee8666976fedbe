package generator

import "time"

// PlacementConfiguration says where a component is deployed, and under which name.
type PlacementConfiguration interface {
	// GetDeploymentNamespace returns the namespace of objects whose manifests name none. If it is empty, the namespace
	// of the resource counts.
	GetDeploymentNamespace() string
	// GetDeploymentName returns the name that generators name objects after. If it is empty, the name of the resource
	// counts.
	GetDeploymentName() string
}

// ClientConfiguration says to which cluster a component is deployed, if the resource itself contains the kubeconfig.
type ClientConfiguration interface {
	// GetKubeConfig returns a kubeconfig. If it is empty, the component is deployed to the cluster of the resource.
	GetKubeConfig() []byte
}

// KubeConfigReference says to which cluster a component is deployed, if a Secret contains the kubeconfig. The
// reconciler reads the Secret. A resource that has a [ClientConfiguration] cannot have this.
type KubeConfigReference interface {
	// GetKubeConfigSecret returns a reference to a Secret in the namespace of the resource. If it is nil, the component
	// is deployed to the cluster of the resource.
	GetKubeConfigSecret() *SecretKeyReference
}

// AbandonmentConfiguration says what happens if a component is deleted and the Secret with the kubeconfig of its
// cluster does not exist.
type AbandonmentConfiguration interface {
	// AbandonsOnDeletion returns true if the objects in that cluster are then given up: they stay as they are, and the
	// component is gone. If it is false, the deletion waits until the Secret exists again.
	//
	// It counts only if the Secret, or the key in it, does not exist. The deletion waits for a cluster that does not
	// answer, or that rejects the kubeconfig, unless the resource has the annotation [AnnotationAbandon]. It never
	// deletes anything in another cluster instead.
	AbandonsOnDeletion() bool
}

// ImpersonationConfiguration says which user deploys a component. With a kubeconfig, the user of the kubeconfig
// impersonates that user in the cluster of the kubeconfig.
type ImpersonationConfiguration interface {
	// GetImpersonationUser returns a user. If it is empty, the reconciler deploys as the user it is configured with. In
	// "system:serviceaccount::<name>" the namespace of the resource is filled in. Another user of Kubernetes itself,
	// whose name begins with "system:", is an error.
	GetImpersonationUser() string
	// GetImpersonationGroups returns groups of the user, in any order. Groups without a user are an error, and so is
	// the group system:masters. With groups, the API server gives none of its own to a service account.
	GetImpersonationGroups() []string
}

// SuspensionConfiguration says whether a component is suspended.
type SuspensionConfiguration interface {
	// IsSuspended returns true if the component is not reconciled, except for its deletion.
	IsSuspended() bool
}

// RequeueConfiguration says how often a component is reconciled although nothing has happened.
type RequeueConfiguration interface {
	// GetRequeueInterval returns the time from a success to the next request. If it is 0, [DefaultRequeueInterval]
	// counts.
	GetRequeueInterval() time.Duration
}

// RetryConfiguration says when to try again after a [RetriableError].
type RetryConfiguration interface {
	// GetRetryInterval returns the time after a [RetriableError] that does not contain a time. If it is 0, the requeue
	// interval counts.
	GetRetryInterval() time.Duration
}

// TimeoutConfiguration says how long a roll-out may take.
type TimeoutConfiguration interface {
	// GetTimeout returns the time after which a roll-out that is not complete counts as failed. The roll-out continues.
	// If it is 0, the requeue interval counts.
	GetTimeout() time.Duration
}

// PolicyConfiguration says how objects are treated that have no annotation for it. If a policy is empty, the default of
// the reconciler counts. Policies may be spelt in all ways that [ParseAdoptionPolicy] and the like accept.
type PolicyConfiguration interface {
	GetAdoptionPolicy() AdoptionPolicy
	GetUpdatePolicy() UpdatePolicy
	GetDeletePolicy() DeletePolicy
	GetMissingNamespacesPolicy() MissingNamespacesPolicy
}

// PrunePolicyConfiguration adds the prune policy to a [PolicyConfiguration].
type PrunePolicyConfiguration interface {
	// GetPrunePolicy returns the policy of objects that have no annotation for it. If it is empty, the default of the
	// reconciler counts.
	GetPrunePolicy() PrunePolicy
}

// TypeConfiguration names types that a component brings into the cluster without a CustomResourceDefinition or an
// APIService of its own.
type TypeConfiguration interface {
	// GetAdditionalManagedTypes returns patterns of these types. Objects of the component that match are applied late
	// and deleted early. Objects of other owners that match block the deletion of the component.
	GetAdditionalManagedTypes() []TypePattern
}

// ReapplyConfiguration says how often objects are written although nothing seems to have changed.
type ReapplyConfiguration interface {
	// GetReapplyInterval returns the time since the last write. 0 is never, unless the reconciler is configured
	// otherwise.
	GetReapplyInterval() time.Duration
}
