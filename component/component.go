package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/definitions"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/validation"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8svalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComponentReconciler deploys a component: a set of objects that a generator makes for the resource. It keeps the
// objects as desired, in waves, and deletes them again. It records each object before it creates it, and it does not
// touch objects of others.
//
//   - Runs: the generator; then it writes each object that differs from what is desired, wave by wave. A wave starts
//     when the wave before is ready. What is not desired any more is pruned. If nothing differs, no request is made.
//   - Stops: where a wave is not ready yet; it never waits. Watches on the types of the objects bring the resource back
//     when an object becomes ready, and when another client changes or deletes one.
//   - On error: deals with the other objects all the same, and returns the errors. Each names its object, and is in the
//     inventory and in the condition. A panic of the generator, a hook or another function of the author is an error,
//     which the condition shows with the path of the node; the stack is logged.
//   - On deletion: deletes the objects in the order of their delete waves, and instances of types that the component
//     brought first. While others have instances of such a type nothing is deleted, and the condition names them. The
//     finalizer is removed when all objects are gone. A resource without the finalizer is left alone. To have other
//     nodes wait until the component is gone, put them before it in a [reconcilers.ReverseOnDeletion].
//
// A Job with ttlSecondsAfterFinished, which Kubernetes deletes after it finished, runs once for each desired state:
//
//   - Completed: the component stays ready when the Job is gone, and its record gets the phase Completed. It runs again
//     when its manifest changes.
//   - Failed: the component is not ready, and the condition says so. It does not run again before its manifest changes.
//     Exception: as long as the failed Job exists, deleting it with kubectl makes it run again.
//   - Deleted by another client while it runs: it is created again.
//   - Gone while no operator watched: it counts as completed, unless it was known to have failed.
//
// An object that another client keeps changing is corrected a few times at once, then after 20 seconds, and then after
// twice the time with each correction, up to 160 seconds. The condition has the reason Contested, and says who changes
// which fields and what would allow that. No wave waits for the object. The component is ready again when the object
// was left alone for a minute, or for as long as the last delay.
//
// The node obeys a [reconcilers.Supervisor], and tells it how the objects are: as one if all are as they should be,
// else each. A component that is withdrawn is deleted, with its hooks, but the resource stays: the finalizer is
// removed, the condition has the reason Disabled, and the component is rolled out anew when it is maintained again. A
// component that is suspended has each object written, and some deleted, so that nothing runs: at once, whichever wave
// waits, whatever the reconcile policy, the update policy or the ignored fields. Objects that do not exist yet are
// created in their waves. No timeout counts meanwhile. What is resumed is written as generated, wave by wave. A Job
// that is gone since it finished does not run again for that.
//
// A Generator has to return the same objects for the same input: the parameters, References, and the resource. If it
// keeps returning others, an output is kept for 20 seconds, and then for twice the time with each that differs, up to
// 160 seconds. The condition has the reason NondeterministicGenerator, and names the first object and field. The
// component is ready again when the output was the same for a minute, or for as long as the last delay. Another input
// is rolled out at once.
//
// References in the spec, such as a [generator.SecretKeyReference], are loaded before the hooks and the generator are
// called, with the identity of the component, and tracked, see [generator.Reference]. The generator finds them in the
// resource in its context. Values that the spec refers to are merged under the parameters, see
// [generator.ValuesConfiguration]. Another content starts another revision. Without what is referred to, the component
// stays as it is. A deletion does not wait for it.
//
// Annotations of an object say how it is dealt with, see [generator.Settings]. The resource says so for all objects,
// see [generator.ConfigurationOf].
//
// The status of the component is changed in memory, and the root writes it. Set SyncStatusDuringFinalization on the
// root to have it written during deletion. Unless Inventory keeps it elsewhere, the inventory is part of the status.
// The request that follows the write of the status then creates the objects of new records.
//
// Several ComponentReconcilers may stand in a tree, each with a Prefix and a Status of its own. The set-up refuses two
// that have one in common.
type ComponentReconciler[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: ComponentReconciler.
	Name string

	// Prefix is a DNS subdomain name that is unique in the cluster, such as "platform.example.com". It is the prefix of
	// the labels and annotations that say whose an object is, and of the annotations that the component reads. It is
	// also the default of FieldManager and Finalizer. Do not change it later: objects labelled with the old prefix
	// count as objects of another owner. Required.
	Prefix string

	// Generator makes the objects. Required.
	Generator generator.Generator

	// Parameters returns what the generator gets. Default: what GetSpec of the resource returns if that is a
	// [generator.Unstructurable], else the field Spec as a map.
	Parameters func(ctx context.Context, resource Type) (generator.Unstructurable, error)

	// Status returns the status of the component within the resource, to be changed. Default: what GetStatus of the
	// resource returns if that is an [apis.ComponentStatus], else the field Status, or the one embedded in it. The
	// set-up refuses a resource without one. Below a [reconcilers.ForEach] with a Key it is not used: the status of the
	// component of each item is in the [apis.ItemsStatus] of the resource.
	Status func(resource Type) *apis.ComponentStatus

	// Policies are those of a resource whose spec does not say them. An annotation of an object comes before both.
	// Default: that of each policy.
	Policies generator.PolicySpec

	// Configure changes how the component is deployed, after the resource and its spec were read for that. Optional.
	Configure func(ctx context.Context, resource Type, configuration *generator.Configuration) error

	// References returns identities of things that the objects depend on, except for the spec, such as the resource
	// version of a ConfigMap that the generator reads, each under a name. Another identity starts another revision.
	// They must not be confidential. Optional.
	References func(ctx context.Context, resource Type) (map[string]string, error)

	// AllowEmpty has all objects of a component deleted when the generator returns none. By default they stay as they
	// are then, since an input that is lost looks like that, and the condition has the reason EmptySet; the resource
	// may have the annotation [generator.AnnotationAllowEmpty]. An object that is only read, or to be absent, counts as
	// an object. What the generator returns before anything was rolled out may be empty.
	AllowEmpty bool

	// Inventory says where the inventory is kept. Default: in the status of the component.
	Inventory Inventory

	// FieldManager is the name that objects are written under. Do not change it later. Default: Prefix.
	FieldManager string

	// ReclaimFrom lists prefixes of names of field managers. The update policy ApplyOverride takes over the fields of
	// these managers. Default: kubectl.
	ReclaimFrom []string

	// Finalizer keeps the resource until its objects are gone. A resource that is being deleted without it is left
	// alone, so give the name that resources have already. Default: Prefix, followed by "/component".
	Finalizer string

	// Condition is the type of the condition that says how the component is. Default: Ready.
	Condition string

	// Hooks are called around the work. Optional.
	Hooks generator.Hooks[Type]

	// Reflect copies the status of the component to conditions and fields of the resource. It is called each time the
	// status of the component was set. Optional.
	Reflect func(ctx context.Context, resource Type, status *apis.ComponentStatus)

	// Dependents has an object of each type that the component may have. The RBAC rules that are derived from the tree
	// allow what the node does with these. A CustomResourceDefinition with its names says how its resource is called;
	// without that, and without a mapper, the name is guessed. If Dependents is empty, you must grant these permissions
	// yourself.
	//
	// With a Namespace, they also allow to list all types, of which only metadata is read: a namespace is not deleted
	// while others have objects in it. They do not if the Namespace in Dependents has the annotation delete-policy:
	// orphan, or foreign-instances: ignore, as those of the component then must have. With a CustomResourceDefinition,
	// they allow to list its instances, and to create one with a dry run.
	Dependents []client.Object

	// Parallel is how many requests are made at the same time for one component. Default: 16.
	Parallel int

	// DefaultServiceAccount is the service account, in the namespace of the resource, that a component is deployed with
	// whose resource names no user. A component with a kubeconfig is deployed with the user of the kubeconfig all the
	// same. A resource without a namespace must name a user; it is an error otherwise. Default: the user that the
	// operator is configured with.
	DefaultServiceAccount string

	// ClusterID identifies the cluster of the resources. It is part of the owner of objects in clusters that are
	// reached with a kubeconfig. Two operators in different clusters that deploy to the same cluster thus never take
	// over each other's objects, even if the resources have the same kind, namespace and name. Do not change it later:
	// objects with the old one count as objects of another owner. When the resources move to another cluster, such as
	// one restored from a backup, set it to what it was in the first. It has at most 63 letters, digits, dashes, dots
	// and underscores. Default: the UID of the Namespace kube-system, which the operator must be allowed to get. It is
	// read once, and only if there is a component with a kubeconfig.
	ClusterID string

	// RequestTimeout is how long a request to a cluster with a kubeconfig may take. Watches have no limit. Default: 30
	// seconds.
	RequestTimeout time.Duration

	// FenceMargin is how long the deletion of a CustomResourceDefinition waits at least, once the API server has proven
	// that it refuses new instances, and before it looks for instances of others for the last time. It covers two
	// things. Where there are several API servers, those that the proof did not meet may see the definition later; the
	// margin is at least twice as long as those that it met took. And an instance is created although its type is
	// being removed if its request began before that, and its body arrived later. Such a request is covered if it takes
	// no longer than the margin. An API server gives up a request after a minute (--request-timeout), so a minute
	// covers them all. All types of a component share one margin. Default: 2 seconds. A negative margin stands for
	// none.
	//
	// No request waits for the margin: it ends, and the component comes back when the margin is over. The annotation
	// fence of the definition says when that is, by the clock of the operator that has put up the fence.
	//
	// The proof counts the API servers by their Leases in the namespace kube-system, if it may list these. Otherwise it
	// assumes three.
	FenceMargin time.Duration

	targets  targets
	source   eventSource
	states   reconcilers.ResourceState[*resourceState]
	initOnce sync.Once
	// refers is true if the spec may have references.
	refers bool
	// statusByDefault is true if the author did not define Status.
	statusByDefault bool

	// generatorScheme has the types that the generator registers; nil if it registers none.
	generatorScheme *runtime.Scheme
	generatorErr    error

	// policies are Policies in the spelling of package apis.
	policies    generator.Configuration
	policiesErr error
}

var (
	_ reconcilers.SubReconciler[client.Object] = (*ComponentReconciler[client.Object])(nil)
	_ reconcilers.Describer                    = (*ComponentReconciler[client.Object])(nil)
	_ validation.Validator                     = (*ComponentReconciler[client.Object])(nil)
)

func (r *ComponentReconciler[T]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "ComponentReconciler")
		r.FieldManager = cmp.Or(r.FieldManager, r.Prefix)
		r.Condition = cmp.Or(r.Condition, apis.ConditionReady)
		if r.Prefix != "" {
			r.Finalizer = cmp.Or(r.Finalizer, r.Prefix+"/component")
		}
		if r.ReclaimFrom == nil {
			r.ReclaimFrom = []string{"kubectl"}
		}
		if r.Parameters == nil {
			r.Parameters = defaultParameters[T]
		}
		if r.Status == nil {
			r.Status, r.statusByDefault = defaultStatus[T], true
		}
		r.policies, r.policiesErr = generator.ConfigurationOf(&r.Policies)
		t := reflect.TypeFor[T]()
		r.refers = t.Kind() == reflect.Interface || generator.HasReferences(*new(T))
		if !gotype.IsNil(r.Generator) {
			r.generatorScheme, r.generatorErr = manifest.SchemeOf(r.Generator)
		}
	})
}

// SetupWithManager validates, and adds the watches that bring the resource back.
func (r *ComponentReconciler[T]) SetupWithManager(
	ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	r.init()
	ctx = reconcilers.Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	sample := sampleOf[T](ctx)
	if err := r.checkStatus(ctx, sample); err != nil {
		return err
	}
	if err := r.claim(ctx, sample); err != nil {
		return err
	}
	if bldr == nil {
		return errors.New("there is no builder to add a watch to")
	}
	if _, ok := generator.Lookup[generator.KubeConfigReference](sample); ok {
		if err := reconcilers.WatchTracked(ctx, bldr, &corev1.Secret{}); err != nil {
			return err
		}
	}
	if err := watchReferenced(ctx, bldr, sample); err != nil {
		return err
	}
	r.source.onStop(r.targets.stop)
	bldr.WatchesRawSource(&r.source)
	return nil
}

// sampleOf returns an object of the type that the node sees.
func sampleOf[T client.Object](ctx context.Context) T {
	if sample, ok := reconcilers.RetrieveResourceType(ctx).(T); ok {
		return sample
	}
	return gotype.Empty[T]()
}

// maxPrefix leaves room for the keys that follow it, and for a field manager made of it.
const maxPrefix = 100

// Validate checks that the required fields are set and valid and, if recursive, the generator.
func (r *ComponentReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if validator, ok := r.Generator.(validation.Validator); ok && validation.IsRecursive(ctx) {
		if err := validator.Validate(ctx); err != nil {
			return fmt.Errorf("ComponentReconciler %q must have a valid Generator: %w", r.Name, err)
		}
	}
	return nil
}

func (r *ComponentReconciler[T]) check() error {
	if r.Prefix == "" {
		return fmt.Errorf("ComponentReconciler %q must define Prefix", r.Name)
	}
	if len(k8svalidation.IsDNS1123Subdomain(r.Prefix)) > 0 || len(r.Prefix) > maxPrefix {
		return fmt.Errorf("ComponentReconciler %q must define a Prefix that is a DNS subdomain name "+
			"of at most %d characters, not %q", r.Name, maxPrefix, r.Prefix)
	}
	if r.Prefix == generator.SharedPrefix {
		return fmt.Errorf("ComponentReconciler %q must define a Prefix other than %q, which all share",
			r.Name, r.Prefix)
	}
	if gotype.IsNil(r.Generator) {
		return fmt.Errorf("ComponentReconciler %q must define Generator", r.Name)
	}
	if r.generatorErr != nil {
		return fmt.Errorf("ComponentReconciler %q must have a Generator that can register its types: %w",
			r.Name, r.generatorErr)
	}
	if r.policiesErr != nil {
		return fmt.Errorf("ComponentReconciler %q must have valid Policies: %w", r.Name, r.policiesErr)
	}
	if err := r.checkIdentity(); err != nil {
		return err
	}
	if err := r.Inventory.validate(); err != nil {
		return fmt.Errorf("ComponentReconciler %q must have a valid Inventory: %w", r.Name, err)
	}
	return nil
}

// Describe shows the prefix, and what the node does with the resource, with the types of Dependents, and with what it
// needs to deploy to other clusters.
func (r *ComponentReconciler[T]) Describe() reconcilers.Description {
	r.init()
	uses := []reconcilers.Access{{Verbs: []string{"patch"}}}
	uses = append(uses, r.Inventory.uses()...)
	uses = append(uses, r.identityUses()...)
	uses = append(uses, usesOfReferences(*new(T))...)
	for _, dependent := range r.Dependents {
		uses = append(uses, reconcilers.Access{Object: dependent, Verbs: slices.Clone(dependentVerbs)})
		uses = append(uses, r.usesOfForeign(dependent)...)
	}
	description := reconcilers.Description{Kind: "ComponentReconciler", Name: r.Name, Detail: r.Prefix, Uses: uses}
	if r.Condition != "" {
		description.Conditions = []string{r.Condition}
	}
	if r.Finalizer != "" {
		description.Finalizers = []string{r.Finalizer}
	}
	return description
}

// usesOfForeign is what tells whether others use what a dependent contains, before it is deleted: the objects in a
// namespace, or the instances of a type, of which one is created with a dry run. It is nothing if the dependent stays,
// or goes with whatever it contains, by its annotations.
func (r *ComponentReconciler[T]) usesOfForeign(dependent client.Object) []reconcilers.Access {
	// A malformed annotation counts as none: it is an error of the object, if the component has it too.
	settings, _ := generator.ReadSettings(r.Prefix, dependent.GetAnnotations())
	if settings.IgnoreForeignInstances || settings.DeletePolicy == apis.DeleteOrphan {
		return nil
	}
	content, verbs := schema.GroupVersionKind{Group: "*", Version: "*", Kind: "*"}, []string{"list"}
	_, isNamespace := dependent.(*corev1.Namespace)
	if !isNamespace && dependent.GetObjectKind().GroupVersionKind().GroupKind() != kinds.Namespace {
		defined, ok := definitions.Defines(dependent)
		if !ok {
			return nil
		}
		content, verbs = defined, []string{"list", "create"}
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(content)
	return []reconcilers.Access{{Object: object, Verbs: verbs}}
}

var dependentVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// defaultParameters returns what GetSpec of the resource returns, else its field Spec.
func defaultParameters[T client.Object](_ context.Context, resource T) (generator.Unstructurable, error) {
	if specified, ok := any(resource).(interface {
		GetSpec() generator.Unstructurable
	}); ok {
		return specified.GetSpec(), nil
	}
	if content, ok := any(resource).(runtime.Unstructured); ok {
		spec, _ := content.UnstructuredContent()["spec"].(map[string]any)
		return generator.UnstructurableMap(runtime.DeepCopyJSON(spec)), nil
	}
	spec, ok := statusfield.StructOf(resource, "Spec")
	if !ok {
		return nil, fmt.Errorf("%s has no field Spec, so Parameters must be defined: %w", typeOf(resource), errNoSpec)
	}
	if specified, ok := spec.Addr().Interface().(generator.Unstructurable); ok {
		return specified, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec.Addr().Interface())
	if err != nil {
		return nil, fmt.Errorf("the field Spec of %s cannot be turned into parameters: %w", typeOf(resource), err)
	}
	return generator.UnstructurableMap(content), nil
}

var errNoSpec = errors.New("there is no spec")

// statusGetter is a resource that returns its status itself.
type statusGetter interface{ GetStatus() *apis.ComponentStatus }

// defaultStatus returns what GetStatus of the resource returns, else its field Status, or what is embedded there; nil
// if there is none.
func defaultStatus[T client.Object](resource T) *apis.ComponentStatus {
	if stated, ok := any(resource).(statusGetter); ok {
		return stated.GetStatus()
	}
	return statusfield.PartOf[apis.ComponentStatus](resource)
}

// typeOf names the type of the resource: by its kind if it has one, else by its Go type.
func typeOf(resource client.Object) string {
	if kind := resource.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return gotype.Name(reflect.TypeOf(resource))
}
