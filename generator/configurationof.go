package generator

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// DefaultRequeueInterval is how often a component is reconciled that does not configure it.
const DefaultRequeueInterval = 10 * time.Minute

// Configuration is the complete and valid configuration of how a resource is deployed.
type Configuration struct {
	// Namespace is the namespace of objects whose manifests name none, and Name the name that objects are named after.
	// Both default to those of the resource. Namespace is empty if the resource has no namespace and configures none.
	Namespace, Name string

	// KubeConfig is the kubeconfig of the cluster to deploy to. It is nil for the cluster of the resource, and if
	// KubeConfigSecret is set. It is confidential.
	KubeConfig []byte `json:"-"`
	// KubeConfigSecret refers to the kubeconfig. It is nil if there is none, or if KubeConfig is set.
	KubeConfigSecret *SecretKeyReference
	// AbandonOnDeletion is described in [AbandonmentConfiguration].
	AbandonOnDeletion bool

	// User and Groups are impersonated. If they are empty, the reconciler deploys as the user it is configured with.
	User   string
	Groups []string

	// Suspended stops all reconciliation, except for a deletion.
	Suspended bool
	// Requeue, Retry and Timeout are described in [RequeueConfiguration], [RetryConfiguration] and
	// [TimeoutConfiguration]. They are greater than 0.
	Requeue, Retry, Timeout time.Duration
	// ReapplyInterval is 0 for never.
	ReapplyInterval time.Duration

	// The policies are empty if the defaults of the reconciler count.
	AdoptionPolicy          AdoptionPolicy
	UpdatePolicy            UpdatePolicy
	DeletePolicy            DeletePolicy
	PrunePolicy             PrunePolicy
	MissingNamespacesPolicy MissingNamespacesPolicy

	// AdditionalManagedTypes are types that the component brings, in addition to the types that its objects define.
	AdditionalManagedTypes []TypePattern
}

// String returns a short text without confidential parts: where the component is deployed, and as which user.
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

// GoString returns the same as String, so that the verb %#v does not show the kubeconfig either.
func (c Configuration) GoString() string {
	return c.String()
}

// ConfigurationOf reads the configuration of a resource, as [Lookup] finds it, and fills in defaults. It changes
// nothing, and the result shares nothing with the resource.
//
// The error joins all problems. Each names the field as the structs of this package do. Problems are a negative time,
// an unknown policy, an invalid pattern, two kubeconfigs, a service account without a namespace, and a method that
// panics. The configuration is then the zero value.
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
		{"SuspensionConfiguration", func(from []any, c *Configuration) error {
			with(from, func(s SuspensionConfiguration) { c.Suspended = s.IsSuspended() })
			return nil
		}},
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
	if c.Name == "" {
		with(from[:1], func(object interface{ GetName() string }) { c.Name = object.GetName() })
	}
	return errors.Join(errs...)
}

// ownNamespace returns the namespace of the resource. It does not ask the spec, whose GetNamespace could mean something
// else.
func ownNamespace(from []any) (namespace string) {
	with(from[:1], func(object interface{ GetNamespace() string }) { namespace = object.GetNamespace() })
	return namespace
}

func readCluster(from []any, c *Configuration) error {
	with(from, func(config ClientConfiguration) {
		if kubeConfig := config.GetKubeConfig(); len(kubeConfig) > 0 {
			c.KubeConfig = bytes.Clone(kubeConfig)
		}
	})
	with(from, func(r KubeConfigReference) { c.KubeConfigSecret = r.GetKubeConfigSecret().DeepCopy() })
	with(from, func(a AbandonmentConfiguration) { c.AbandonOnDeletion = a.AbandonsOnDeletion() })
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

// serviceAccountWithoutNamespace is the prefix of a user whose namespace is filled in.
const serviceAccountWithoutNamespace = "system:serviceaccount::"

func readImpersonation(from []any, c *Configuration) error {
	impersonation, ok := find[ImpersonationConfiguration](from)
	if !ok {
		return nil
	}
	c.User, c.Groups = impersonation.GetImpersonationUser(), slices.Clone(impersonation.GetImpersonationGroups())
	account, ok := strings.CutPrefix(c.User, serviceAccountWithoutNamespace)
	if err := checkImpersonation(c.User, c.Groups); err != nil || !ok {
		return err
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

// checkImpersonation refuses users and groups that a resource must not ask for.
func checkImpersonation(user string, groups []string) error {
	switch {
	case user == "" && len(groups) > 0:
		return errors.New("impersonation: there are groups, but no user")
	case slices.Contains(groups, ""):
		return errors.New("impersonation: a group has no name")
	case slices.Contains(groups, "system:masters"):
		return errors.New("impersonation: the group system:masters is refused: " +
			"it may do anything, whatever the roles are")
	case strings.HasPrefix(user, "system:") && !strings.HasPrefix(user, "system:serviceaccount:"):
		return fmt.Errorf("impersonation: the user %s of Kubernetes itself is refused, unless Configure sets it",
			quote(user))
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
	with(from, func(r RequeueConfiguration) { c.Requeue = check("requeueInterval", r.GetRequeueInterval()) })
	with(from, func(r RetryConfiguration) { c.Retry = check("retryInterval", r.GetRetryInterval()) })
	with(from, func(t TimeoutConfiguration) { c.Timeout = check("timeout", t.GetTimeout()) })
	with(from, func(r ReapplyConfiguration) { c.ReapplyInterval = check("reapplyInterval", r.GetReapplyInterval()) })
	c.Requeue = cmp.Or(c.Requeue, DefaultRequeueInterval)
	c.Retry, c.Timeout = cmp.Or(c.Retry, c.Requeue), cmp.Or(c.Timeout, c.Requeue)
	return errors.Join(errs...)
}

func readPolicies(from []any, c *Configuration) error {
	var errs []error
	if policies, ok := find[PolicyConfiguration](from); ok {
		errs = append(errs,
			readPolicy(&c.AdoptionPolicy, "adoptionPolicy", policies.GetAdoptionPolicy(), ParseAdoptionPolicy),
			readPolicy(&c.UpdatePolicy, "updatePolicy", policies.GetUpdatePolicy(), ParseUpdatePolicy),
			readPolicy(&c.DeletePolicy, "deletePolicy", policies.GetDeletePolicy(), ParseDeletePolicy),
			readPolicy(&c.MissingNamespacesPolicy, "missingNamespacesPolicy", policies.GetMissingNamespacesPolicy(),
				ParseMissingNamespacesPolicy),
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

// Lookup returns the implementation of the interface I for a resource. It looks at the resource itself, then at the
// result of its method GetSpec, if that has no arguments and one result, and then at its field Spec. For a spec that is
// a struct it looks at a pointer to it, so that an embedded struct can implement I with pointer receivers. A nil
// pointer implements nothing.
//
// Lookup never panics. If GetSpec panics, Lookup treats it as missing, and [ConfigurationOf] returns an error.
func Lookup[I any](resource any) (I, bool) {
	// GetSpec may be costly.
	if found, ok := find[I]([]any{resource}); ok {
		return found, true
	}
	specs, _ := specsOf(resource)
	return find[I](specs)
}

// SpecOf returns the spec of a resource: the result of its method GetSpec, if that has no arguments and one result, or
// else its field Spec, as a pointer if it is a struct. It is nil if there is none. It is an error if GetSpec panics.
func SpecOf(resource any) (any, error) {
	specs, err := specsOf(resource)
	if err != nil || len(specs) == 0 {
		return nil, err
	}
	return specs[0], nil
}

// with calls f with the first of candidates that implements I, if there is one.
func with[I any](candidates []any, f func(I)) {
	if found, ok := find[I](candidates); ok {
		f(found)
	}
}

// find returns the first of candidates that implements I.
func find[I any](candidates []any) (I, bool) {
	for _, candidate := range candidates {
		if found, ok := candidate.(I); ok && !gotype.IsNil(candidate) {
			return found, true
		}
	}
	var none I
	return none, false
}

// specsOf returns the values that are looked at after the resource itself, the best first.
func specsOf(resource any) ([]any, error) {
	if gotype.IsNil(resource) {
		return nil, nil
	}
	var specs []any
	add := func(v reflect.Value) {
		if spec, ok := asSpec(v); ok {
			specs = append(specs, spec)
		}
	}
	value := reflect.ValueOf(resource)
	method := value.MethodByName("GetSpec")
	if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		if err := guarded("GetSpec", func() { add(method.Call(nil)[0]) }); err != nil {
			return nil, err
		}
	}
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return specs, nil
	}
	if field, ok := value.Type().FieldByName("Spec"); ok {
		// The field may be promoted from an embedded pointer that is nil.
		if v, err := value.FieldByIndexErr(field.Index); err == nil {
			add(v)
		}
	}
	return specs, nil
}

// asSpec returns the value of v, as a pointer if it is a struct, or false if there is none.
func asSpec(v reflect.Value) (any, bool) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	if v.Kind() != reflect.Struct {
		return v.Interface(), true
	}
	if !v.CanAddr() {
		addressable := reflect.New(v.Type())
		addressable.Elem().Set(v)
		return addressable.Interface(), true
	}
	return v.Addr().Interface(), true
}

// guarded calls f and turns a panic into an error. The error contains the value of the panic only if it comes from the
// Go runtime, which puts no content of objects into its texts.
func guarded(what string, f func()) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%s panicked", what)
			if cause, ok := thrown.(runtime.Error); ok {
				err = fmt.Errorf("%s panicked: %w", what, cause)
			}
		}
	}()
	f()
	return nil
}
