package component

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultRequeueInterval is how often a component is looked after that says nothing about it.
const DefaultRequeueInterval = 10 * time.Minute

// Configuration is what a resource says about how it is deployed, complete and valid.
type Configuration struct {
	// Namespace is the one for objects that name none, and Name the one that objects are named after. Both are the resource's own
	// by default. Namespace is empty if neither is known: the resource is in none, and says nothing.
	Namespace, Name string

	// KubeConfig is that of the cluster to deploy to; nil for that of the resource, and where KubeConfigSecret has it. It is
	// confidential.
	KubeConfig []byte `json:"-"`
	// KubeConfigSecret says where the kubeconfig is; nil if there is none, or it is KubeConfig.
	KubeConfigSecret *SecretKeyReference
	// AbandonOnDeletion: see [AbandonmentConfiguration].
	AbandonOnDeletion bool

	// User and Groups are whom to impersonate; empty for whomever the reconciler is configured to use.
	User   string
	Groups []string

	// Suspended: nothing is to be done, except for a deletion.
	Suspended bool
	// Requeue, Retry and Timeout are as [RequeueConfiguration], [RetryConfiguration] and [TimeoutConfiguration] say. They are
	// greater than 0.
	Requeue, Retry, Timeout time.Duration
	// ReapplyInterval is 0 if it is up to the reconciler.
	ReapplyInterval time.Duration

	// The policies; empty if they are up to the reconciler.
	AdoptionPolicy          AdoptionPolicy
	UpdatePolicy            UpdatePolicy
	DeletePolicy            DeletePolicy
	PrunePolicy             PrunePolicy
	MissingNamespacesPolicy MissingNamespacesPolicy

	// AdditionalManagedTypes are types that the component brings besides those of its objects.
	AdditionalManagedTypes []TypePattern
}

// String says in short where, and as whom; nothing confidential.
func (c Configuration) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s/%s", c.Namespace, c.Name)
	switch {
	case c.KubeConfigSecret != nil:
		fmt.Fprintf(&text, " in the cluster of Secret %s", c.KubeConfigSecret.Name)
	case len(c.KubeConfig) > 0:
		text.WriteString(" in another cluster")
	}
	if c.User != "" {
		fmt.Fprintf(&text, " as %s", c.User)
	}
	return text.String()
}

// GoString is String: the verb %#v must not show the kubeconfig either.
func (c Configuration) GoString() string {
	return c.String()
}

// ConfigurationOf asks a resource for all that it says about how it is deployed, see [Lookup], and fills in defaults. It changes
// nothing, and the result shares nothing with the resource.
//
// The error joins all that is wrong, each with the name that the field has in the structs of this package: a negative time, a
// policy or a pattern that does not exist, a kubeconfig given twice, a service account without a namespace. A method that
// panics is an error, too. The configuration is then the zero value.
func ConfigurationOf(resource any) (Configuration, error) {
	specs, err := specsOf(resource)
	if err != nil {
		return Configuration{}, err
	}
	from := append([]any{resource}, specs...)
	var c Configuration
	var errs []error
	for _, section := range []struct {
		name string
		read func(from []any, c *Configuration) error
	}{
		{"PlacementConfiguration", readPlacement},
		{"ClientConfiguration", readCluster},
		{"ImpersonationConfiguration", readImpersonation},
		{"SuspensionConfiguration", readSuspension},
		{"RequeueConfiguration, RetryConfiguration, TimeoutConfiguration or ReapplyConfiguration", readTimes},
		{"PolicyConfiguration", readPolicies},
		{"TypeConfiguration", readTypes},
	} {
		var err error
		if thrown := guarded(section.name, func() { err = section.read(from, &c) }); thrown != nil {
			err = thrown
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Configuration{}, err
	}
	return c, nil
}

func readPlacement(from []any, c *Configuration) error {
	var errs []error
	if placement, ok := find[PlacementConfiguration](from); ok {
		c.Namespace, c.Name = placement.GetDeploymentNamespace(), placement.GetDeploymentName()
		if c.Namespace != "" && len(validation.IsDNS1123Label(c.Namespace)) > 0 {
			errs = append(errs, fmt.Errorf("namespace: is not a name of a namespace: %s", quote(c.Namespace)))
		}
		if c.Name != "" && len(content.IsPathSegmentName(c.Name)) > 0 {
			errs = append(errs, fmt.Errorf("name: is not a name: %s", quote(c.Name)))
		}
	}
	if c.Namespace == "" {
		c.Namespace = ownNamespace(from)
	}
	if named, ok := find[interface{ GetName() string }](from[:1]); ok && c.Name == "" {
		c.Name = named.GetName()
	}
	return errors.Join(errs...)
}

// ownNamespace is the namespace that the resource is in. The spec is not asked: that it has such a method would mean something else.
func ownNamespace(from []any) string {
	if object, ok := find[interface{ GetNamespace() string }](from[:1]); ok {
		return object.GetNamespace()
	}
	return ""
}

func readCluster(from []any, c *Configuration) error {
	if config, ok := find[ClientConfiguration](from); ok {
		if kubeConfig := config.GetKubeConfig(); len(kubeConfig) > 0 {
			c.KubeConfig = bytes.Clone(kubeConfig)
		}
	}
	if reference, ok := find[KubeConfigReference](from); ok {
		c.KubeConfigSecret = reference.GetKubeConfigSecret().DeepCopy()
	}
	if abandonment, ok := find[AbandonmentConfiguration](from); ok {
		c.AbandonOnDeletion = abandonment.AbandonsOnDeletion()
	}
	if c.KubeConfigSecret == nil {
		return nil
	}
	if c.KubeConfig != nil {
		return errors.New("kubeConfig: is given by the resource and by reference to a Secret; only one of them may be")
	}
	if err := c.KubeConfigSecret.Validate(); err != nil {
		return fmt.Errorf("kubeConfig.secretRef.%w", err)
	}
	return nil
}

// serviceAccountWithoutNamespace is how a user begins that has its namespace filled in.
const serviceAccountWithoutNamespace = "system:serviceaccount::"

func readImpersonation(from []any, c *Configuration) error {
	impersonation, ok := find[ImpersonationConfiguration](from)
	if !ok {
		return nil
	}
	c.User, c.Groups = impersonation.GetImpersonationUser(), slices.Clone(impersonation.GetImpersonationGroups())
	account, ok := strings.CutPrefix(c.User, serviceAccountWithoutNamespace)
	if !ok {
		if c.User == "" && len(c.Groups) > 0 {
			return errors.New("impersonation: there are groups, but no user")
		}
		return nil
	}
	// A name with a colon in it could otherwise pass for an account in another namespace.
	if len(validation.IsDNS1123Subdomain(account)) > 0 {
		return fmt.Errorf("serviceAccountName: is not a name of a service account: %s", quote(account))
	}
	namespace := ownNamespace(from)
	if namespace == "" {
		return fmt.Errorf("serviceAccountName: the resource is in no namespace in which %s could be", quote(account))
	}
	c.User = "system:serviceaccount:" + namespace + ":" + account
	return nil
}

func readSuspension(from []any, c *Configuration) error {
	if suspension, ok := find[SuspensionConfiguration](from); ok {
		c.Suspended = suspension.IsSuspended()
	}
	return nil
}

func readTimes(from []any, c *Configuration) error {
	var errs []error
	check := func(field string, d time.Duration) time.Duration {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative: %s", field, d))
		}
		return d
	}
	if requeue, ok := find[RequeueConfiguration](from); ok {
		c.Requeue = check("requeueInterval", requeue.GetRequeueInterval())
	}
	if retry, ok := find[RetryConfiguration](from); ok {
		c.Retry = check("retryInterval", retry.GetRetryInterval())
	}
	if timeout, ok := find[TimeoutConfiguration](from); ok {
		c.Timeout = check("timeout", timeout.GetTimeout())
	}
	if reapply, ok := find[ReapplyConfiguration](from); ok {
		c.ReapplyInterval = check("reapplyInterval", reapply.GetReapplyInterval())
	}
	if c.Requeue == 0 {
		c.Requeue = DefaultRequeueInterval
	}
	if c.Retry == 0 {
		c.Retry = c.Requeue
	}
	if c.Timeout == 0 {
		c.Timeout = c.Requeue
	}
	return errors.Join(errs...)
}

func readPolicies(from []any, c *Configuration) error {
	var errs []error
	if policies, ok := find[PolicyConfiguration](from); ok {
		errs = append(errs,
			readPolicy(&c.AdoptionPolicy, "adoptionPolicy", policies.GetAdoptionPolicy(), ParseAdoptionPolicy),
			readPolicy(&c.UpdatePolicy, "updatePolicy", policies.GetUpdatePolicy(), ParseUpdatePolicy),
			readPolicy(&c.DeletePolicy, "deletePolicy", policies.GetDeletePolicy(), ParseDeletePolicy),
			readPolicy(&c.MissingNamespacesPolicy, "missingNamespacesPolicy", policies.GetMissingNamespacesPolicy(), ParseMissingNamespacesPolicy),
		)
	}
	if policy, ok := find[PrunePolicyConfiguration](from); ok {
		errs = append(errs, readPolicy(&c.PrunePolicy, "prunePolicy", policy.GetPrunePolicy(), ParsePrunePolicy))
	}
	return errors.Join(errs...)
}

func readPolicy[P ~string](to *P, field string, policy P, parse func(string) (P, error)) error {
	if policy == "" {
		return nil
	}
	parsed, err := parse(string(policy))
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*to = parsed
	return nil
}

func readTypes(from []any, c *Configuration) error {
	types, ok := find[TypeConfiguration](from)
	if !ok {
		return nil
	}
	c.AdditionalManagedTypes = slices.Clone(types.GetAdditionalManagedTypes())
	var errs []error
	for i, pattern := range c.AdditionalManagedTypes {
		if err := pattern.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("additionalManagedTypes[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
