package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComponentReconciler deploys a component: a set of objects that a generator makes for the resource. It keeps them as desired,
// in waves, and takes them away again, and it never loses one, nor touches one of somebody else.
//
//   - Runs: the generator; then whatever of the objects differs from what is desired is written, wave by wave: a wave starts once the
//     one before is ready. What the component desires no more is pruned. Each object is recorded in the inventory before it
//     is created. If nothing differs, no request is made.
//   - Stops: where a wave is not ready yet; it never waits. Watches on the types of the objects bring the resource back when
//     something of them changes, be it that they become ready, or that somebody changed or deleted them.
//   - On error: the objects that are not concerned are dealt with all the same; the errors are returned, each naming its object, and
//     are in the inventory and in the condition.
//   - On deletion: the objects go in the order of their delete waves, instances of the types that the component brought first. While
//     others still have instances of such a type nothing is deleted, and the condition names them. The finalizer goes when
//     everything is gone. A resource without the finalizer is left alone.
//
// How an object is dealt with is said by its annotations, see [component.Settings], and by the resource, see
// [component.ConfigurationOf].
//
// The status of the component is changed in memory, and written by the root. Set SyncStatusDuringFinalization on the root for
// it to be seen during deletion. Unless Inventory keeps it elsewhere, the inventory is part of the status, and the objects of new records
// are created by the request that follows the write of the status.
//
// Several ComponentReconcilers may stand in a tree, each with a Prefix and a Status of its own.
type ComponentReconciler[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: ComponentReconciler.
	Name string

	// Prefix is a DNS subdomain name that nobody else in the cluster uses, such as "platform.example.com". It is the prefix of the labels
	// and annotations that tell whose an object is, and of the annotations that the component reads; and the default for FieldManager
	// and Finalizer. Under another one, all objects are somebody else's. Required.
	Prefix string

	// Generator makes the objects. Required.
	Generator component.Generator

	// Parameters are what the generator gets. Default: what GetSpec of the resource returns if that is a
	// [component.Unstructurable], else the field Spec as a map.
	Parameters func(ctx context.Context, resource Type) (component.Unstructurable, error)

	// Status returns the status of the component within the resource, to be changed. Default: what GetStatus of the resource returns if
	// that is an [apis.ComponentStatus], else the field Status, or the one embedded in it.
	Status func(resource Type) *apis.ComponentStatus

	// Configure changes what was found out about how the component is to be deployed, from the resource and its spec. Optional.
	Configure func(ctx context.Context, resource Type, configuration *component.Configuration) error

	// References are identities of things that the objects depend on beside the spec, such as the resource version of a ConfigMap that the
	// generator reads, by a name of their own. Another value starts another revision. They must not be confidential. Optional.
	References func(ctx context.Context, resource Type) (map[string]string, error)

	// Inventory says where the inventory is kept. Default: in the status of the component.
	Inventory ComponentInventory

	// FieldManager is the one that objects are written as. It has to stay the same for ever. Default: Prefix.
	FieldManager string

	// ReclaimFrom are the beginnings of the names of field managers whose fields the update policy ApplyOverride takes.
	// Default: kubectl.
	ReclaimFrom []string

	// Finalizer keeps the resource until its objects are gone. Default: Prefix, followed by "/component".
	Finalizer string

	// Condition is the type of the condition that tells how the component is. Default: Ready.
	Condition string

	// Hooks are called around the work. Optional.
	Hooks component.Hooks[Type]

	// Reflect tells the resource how the component is, in conditions and fields of its own, once the status of the component is set.
	// Optional.
	Reflect func(ctx context.Context, resource Type, status *apis.ComponentStatus)

	// Dependents are an object of each type that the component may have. The RBAC rules that are derived from the tree allow
	// what the node does with these. Without, the author has to see to that. Optional.
	Dependents []client.Object

	// Parallel is how many requests are made at the same time for one component. Default: 16.
	Parallel int

	deployments componentDeployments
	waker       componentWaker
	strays      strayMemories
	initOnce    sync.Once

	// generatorScheme has the types that the generator registers; nil if it registers none.
	generatorScheme *runtime.Scheme
	generatorErr    error
}

var _ SubReconciler[client.Object] = (*ComponentReconciler[client.Object])(nil)

func (r *ComponentReconciler[T]) init() {
	r.initOnce.Do(func() {
		if r.Name == "" {
			r.Name = "ComponentReconciler"
		}
		if r.FieldManager == "" {
			r.FieldManager = r.Prefix
		}
		if r.Finalizer == "" && r.Prefix != "" {
			r.Finalizer = r.Prefix + "/component"
		}
		if r.Condition == "" {
			r.Condition = apis.ConditionReady
		}
		if r.ReclaimFrom == nil {
			r.ReclaimFrom = []string{"kubectl"}
		}
		if r.Parameters == nil {
			r.Parameters = defaultParameters[T]
		}
		if r.Status == nil {
			r.Status = defaultComponentStatus[T]
		}
		if !isNilNode(r.Generator) {
			r.generatorScheme, r.generatorErr = manifest.SchemeOf(r.Generator)
		}
	})
}

// SetupWithManager validates, and has the objects of components wake the resource.
func (r *ComponentReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if bldr == nil {
		return errNoBuilder
	}
	if _, ok := component.Lookup[component.KubeConfigReference](resourceTypeOf[T](ctx)); ok {
		if err := watchTracked(ctx, bldr, &corev1.Secret{}); err != nil {
			return err
		}
	}
	r.waker.whenDone(r.deployments.end)
	bldr.WatchesRawSource(&r.waker)
	return nil
}

// resourceTypeOf returns an object of the type that the node sees.
func resourceTypeOf[T client.Object](ctx context.Context) any {
	if t, ok := scopeOf(ctx).resourceType.(T); ok {
		return t
	}
	return defaultType(*new(T))
}

// maxPrefix leaves room for the keys that follow it, and for a field manager made of it.
const maxPrefix = 100

// Validate checks that the required fields are set and valid.
func (r *ComponentReconciler[T]) Validate(context.Context) error {
	r.init()
	return r.check()
}

func (r *ComponentReconciler[T]) check() error {
	if r.Prefix == "" {
		return fmt.Errorf("ComponentReconciler %q must define Prefix", r.Name)
	}
	if problems := validation.IsDNS1123Subdomain(r.Prefix); len(problems) > 0 || len(r.Prefix) > maxPrefix {
		return fmt.Errorf("ComponentReconciler %q must define a Prefix that is a DNS subdomain name of at most %d characters, not %q", r.Name, maxPrefix, r.Prefix)
	}
	if r.Prefix == component.SharedPrefix {
		return fmt.Errorf("ComponentReconciler %q must define a Prefix other than %q, which all share", r.Name, r.Prefix)
	}
	if isNilNode(r.Generator) {
		return fmt.Errorf("ComponentReconciler %q must define Generator", r.Name)
	}
	if r.generatorErr != nil {
		return fmt.Errorf("ComponentReconciler %q must have a Generator that can register its types: %w", r.Name, r.generatorErr)
	}
	if err := r.Inventory.validate(); err != nil {
		return fmt.Errorf("ComponentReconciler %q must have a valid Inventory: %w", r.Name, err)
	}
	return nil
}

// Describe shows the prefix, and what the node does with the resource and with the types of Dependents.
func (r *ComponentReconciler[T]) Describe() Description {
	r.init()
	uses := []Access{{Verbs: []string{"patch"}}}
	uses = append(uses, r.Inventory.uses()...)
	for _, dependent := range r.Dependents {
		uses = append(uses, Access{Object: dependent, Verbs: slices.Clone(componentVerbs)})
	}
	return Description{Kind: "ComponentReconciler", Name: r.Name, Detail: r.Prefix, Uses: uses}
}

var componentVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
