package component

import "time"

// PlacementConfiguration says where a component is deployed to, and as what.
type PlacementConfiguration interface {
	// GetDeploymentNamespace returns the namespace for objects that name none. Empty: that of the resource.
	GetDeploymentNamespace() string
	// GetDeploymentName returns the name that objects are named after. Empty: that of the resource.
	GetDeploymentName() string
}

// ClientConfiguration says which cluster a component is deployed to, where the resource itself has the kubeconfig.
type ClientConfiguration interface {
	// GetKubeConfig returns a kubeconfig. Empty: the cluster of the resource.
	GetKubeConfig() []byte
}

// KubeConfigReference says which cluster a component is deployed to, where a Secret has the kubeconfig. The reconciler reads it. It
// excludes [ClientConfiguration].
type KubeConfigReference interface {
	// GetKubeConfigSecret returns the reference to a Secret in the namespace of the resource. nil: the cluster of the resource.
	GetKubeConfigSecret() *SecretKeyReference
}

// AbandonmentConfiguration says what becomes of a component that is to be deleted from a cluster which cannot be reached any
// more because the Secret with its kubeconfig is gone.
type AbandonmentConfiguration interface {
	// AbandonsOnDeletion returns true if the objects in that cluster are then given up: they stay as they are, if the cluster is
	// still there. False: the deletion waits until the Secret is back.
	//
	// It is about a Secret that does not exist, or does not have the key, and nothing else: a cluster that does not answer, or
	// rejects the kubeconfig, is waited for in either case. Never is anything deleted from another cluster instead.
	AbandonsOnDeletion() bool
}

// ImpersonationConfiguration says as whom a component is deployed to the cluster of its resource. With the kubeconfig of another
// cluster nobody is impersonated there.
type ImpersonationConfiguration interface {
	// GetImpersonationUser returns a user. Empty: whomever the reconciler is configured to use. In
	// "system:serviceaccount::<name>" the namespace of the resource is filled in.
	GetImpersonationUser() string
	// GetImpersonationGroups returns groups of the user; they need one.
	GetImpersonationGroups() []string
}

// SuspensionConfiguration says whether a component is left as it is.
type SuspensionConfiguration interface {
	// IsSuspended returns true if nothing is to be done about the component, except for its deletion.
	IsSuspended() bool
}

// RequeueConfiguration says how often a component is looked after although nothing has happened.
type RequeueConfiguration interface {
	// GetRequeueInterval returns the time after a success. 0: [DefaultRequeueInterval].
	GetRequeueInterval() time.Duration
}

// RetryConfiguration says when something is tried again that is not there yet.
type RetryConfiguration interface {
	// GetRetryInterval returns the time after a [RetriableError] that names none. 0: the requeue interval.
	GetRetryInterval() time.Duration
}

// TimeoutConfiguration says how long a roll-out may take.
type TimeoutConfiguration interface {
	// GetTimeout returns the time after which a roll-out that has not come to its end counts as failed; it goes on all the
	// same. 0: the requeue interval.
	GetTimeout() time.Duration
}

// PolicyConfiguration says how objects are dealt with that have no annotation about it. An empty policy is up to the
// reconciler. The spellings of [ParseAdoptionPolicy] and so on are understood.
type PolicyConfiguration interface {
	GetAdoptionPolicy() AdoptionPolicy
	GetUpdatePolicy() UpdatePolicy
	GetDeletePolicy() DeletePolicy
	GetMissingNamespacesPolicy() MissingNamespacesPolicy
}

// PrunePolicyConfiguration goes with [PolicyConfiguration], for those who care when dropped objects go.
type PrunePolicyConfiguration interface {
	// GetPrunePolicy returns the policy of objects that have no annotation about it. Empty: up to the reconciler.
	GetPrunePolicy() PrunePolicy
}

// TypeConfiguration names types that a component brings into the cluster other than by a CustomResourceDefinition or an
// APIService of its own.
type TypeConfiguration interface {
	// GetAdditionalManagedTypes returns patterns of these types: objects of the component that match are applied late and
	// deleted early, and those of others block the deletion of the component.
	GetAdditionalManagedTypes() []TypePattern
}

// ReapplyConfiguration says how often objects are written although nothing seems to have changed.
type ReapplyConfiguration interface {
	// GetReapplyInterval returns the time since the last write. 0: up to the reconciler, which by default does not do so: what
	// others change is seen as it happens.
	GetReapplyInterval() time.Duration
}
