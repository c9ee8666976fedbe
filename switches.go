package espalier

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Switches are what [Owns] and [OwnsEach] can do otherwise. Self is the node, which each switch returns. A switch is
// used before the set-up. The set-up refuses switches that contradict each other, with the names of both.
//
// Without a switch, an object is created, corrected by server-side apply, and deleted when it is not desired any more.
// Its health counts, and its error is returned.
//
//	switch       | what it changes                               | not together with
//	Reports      | a condition says how the objects are          |
//	Gate         | while the gate is off, the objects are deleted | Absent
//	ReadOnly     | the objects are read, and never written       | Absent, Unowned, AnyNamespace, CreateOnly,
//	             |                                               | Recreates, Labeled
//	Optional     | a missing object does not count               | needs ReadOnly
//	Absent       | the objects are deleted if they are ours      | Gate, ReadOnly, CreateOnly, Guard, Needs,
//	             |                                               | After, Independent, Yield, Recreates
//	Unowned      | no owner reference: they outlive the resource | ReadOnly, AnyNamespace
//	AnyNamespace | no owner reference: a finalizer deletes them  | ReadOnly, Unowned
//	CreateOnly   | created and deleted, and never updated        | ReadOnly, Absent, Recreates
//	TakeOverFrom | what an earlier release updated may go        | ReadOnly, Absent, Unowned, AnyNamespace,
//	             |                                               | CreateOnly
//	Recreates    | an immutable field is changed by a new object | ReadOnly, Absent, CreateOnly
//	Labeled      | the label of the node tells them apart        | ReadOnly
//	Unwatched    | read by name, with no right to list or watch   | Unowned, Recreates
//	Auxiliary    | neither an error nor the health counts        |
//	Unchecked    | the health does not count                     |
//	Health       | a function says how an object is              | Unchecked
//	Suspension   | another rule for how an object is suspended   |
//	Guard        | a function says whether the node waits        | Absent
//	Needs        | the node waits for values                     | Absent
//	After        | the node waits until others are done          | Absent
//	Independent  | the node waits for nothing                    | Needs, After, Absent
//	Yield        | a value is taken from the object              | Absent
//	RetryAfter   | a delay while something is not as it should be |
//
// All objects are watched, because they are read from the cache, but for those that are Unwatched. A type that the
// cluster does not serve stops only its node: the condition says [reconcilers.StatusReasonKindNotServed], and the node
// goes on when the type is served.
//
// A Job with ttlSecondsAfterFinished is refused, and the condition is False with the reason Invalid: Kubernetes deletes
// it when it has ended, and the node would run it again. Leave the field out. The Job then goes with the resource, or
// when desired returns another name. The literal [reconcilers.ChildReconciler] accepts such a Job.
//
// An object whose node was removed from the program stays, and so does a finalizer of the node, which then keeps the
// resource from being deleted. To have them removed, keep the node with Absent until nothing of them is left.
type Switches[Self any, Type, ChildType client.Object] struct {
	Ordered[Self]
	// object is an object of the type.
	object ChildType
	// desired is the function of the author.
	desired    func(ctx context.Context, resource Type) ([]ChildType, error)
	gate       func(ctx context.Context, resource Type) gate.Gate
	guard      func(ctx context.Context, resource Type) (waits string, err error)
	health     func(live ChildType) apis.Health
	suspension *health.Suspension
	// stores are the functions that store values, and copy is the one that copies into the status.
	stores     []func(ctx context.Context, live []ChildType) error
	copy       func(ctx context.Context, resource Type, live []ChildType) error
	retryAfter time.Duration
	// earlier are the managers that TakeOverFrom names.
	earlier []string

	// owner is the kind of the resource. OurChild needs it, and has no context to ask for it.
	owner atomic.Pointer[schema.GroupKind]
	// anywhere is true if the objects may be in several namespaces.
	anywhere atomic.Bool
	// scope is what is known of the scopes of the resource and of the objects.
	scope scope
	// failures are the errors of a resource that are not returned.
	failures reconcilers.ResourceState[*failure]
	// scales is true if the numbers of replicas are kept over a suspension.
	scales bool

	once sync.Once
	// make makes the engine. Finalized is true if the resource cannot own the objects.
	make   func(finalized bool) engine[Type]
	engine engine[Type]
	// finalized is the engine for objects that the resource cannot own, or nil if there can be none.
	finalized engine[Type]
	invalid   error
}

// engine is the node that writes the objects.
type engine[Type client.Object] interface {
	reconcilers.SubReconciler[Type]
	Validate(ctx context.Context) error
	Describe() reconcilers.Description
}

// init prepares the switches of the node called name, which word makes.
func (s *Switches[Self, T, CT]) init(
	self Self, word, name string, desired func(ctx context.Context, resource T) ([]CT, error),
) {
	s.self, s.desired, s.object = self, desired, gotype.Empty[CT]()
	s.word, s.name, s.kind, s.many = word, name, gotype.Name(reflect.TypeFor[CT]()), word == "OwnsEach"
	s.desires = desired != nil
}

func (s *Switches[Self, T, CT]) with(used switchName, lacksFunction bool) Self {
	s.use(used)
	if lacksFunction {
		s.missing = append(s.missing, used)
	}
	return s.self
}

// Reports has the node report its objects by a condition of that type. It is True with the reason Ready if each object
// is ready by the rules of kstatus and of its kind, or by those of Health; with NotDesired if there are to be none,
// and with NotFound for a missing one that is ignored. It is Unknown with Waiting while the node waits for others. It
// is False with InProgress, Failed, Terminating, Blocked, NotFound, the reason of the API server, of [NotReady], or of
// the rule of Health, and a message. If an error is returned, the condition stays as it was.
func (s *Switches[Self, T, CT]) Reports(conditionType string) Self {
	s.condition = conditionType
	return s.self
}

// Type gives an object of the type. It is required for unstructured objects, and has to carry their kind.
func (s *Switches[Self, T, CT]) Type(object CT) Self {
	s.object = object
	if !gotype.IsNil(object) && object.GetObjectKind().GroupVersionKind().Kind != "" {
		s.kind = object.GetObjectKind().GroupVersionKind().Kind
	}
	return s.self
}

// Gate has the objects deleted while the gate is off. A nil gate is on. If the gate returns an error, the objects stay
// as they are, and the error is returned. Objects that are only read are not read while it is off.
func (s *Switches[Self, T, CT]) Gate(gate func(ctx context.Context, resource T) gate.Gate) Self {
	s.gate = gate
	return s.with(gated, gate == nil)
}

// ReadOnly has the objects read by their names and namespaces; all else that desired returns is ignored. They are
// tracked, so that the resource is reconciled again when they change, come or go. Their health counts. While one is
// missing, the node waits: the condition is False with the reason NotFound. The function desired may itself find what
// is to be read, by a label, say: it lists with [reconcilers.Config.TrackAndList], and returns what it found, or
// [NotReady].
func (s *Switches[Self, T, CT]) ReadOnly() Self { return s.with(readOnly, false) }

// Optional says that an object that is only read may be missing. It is not reported then, and yields nothing.
func (s *Switches[Self, T, CT]) Optional() Self { return s.with(optional, false) }

// Absent has the objects deleted that this node made in an earlier version of the program: the resource controls them,
// and they have the label of the node if it is Labeled. With Unowned, they have the labels of the node and of the
// resource.
//
// The function desired may be nil. Otherwise an object of a name that it returns is deleted too if the resource
// provably made it: it controls the object, or the label espalier.dev/dependent-of names it and nobody controls the
// object, and the object does not have the label of another node or item. So an operator without labels may have made
// it. Any other object of that name stays: the condition is False with NotOurs, and says whose it is.
func (s *Switches[Self, T, CT]) Absent() Self { return s.with(absent, false) }

// Unowned has the objects made without an owner reference. They may be in any namespace, and survive the resource.
// They are found again by the label espalier.dev/dependent-of, which identifies the resource, and by that of the node,
// see Labeled.
func (s *Switches[Self, T, CT]) Unowned() Self { return s.with(unowned, false) }

// CreateOnly has the objects never updated, with one exception: an object is written once when it is suspended, and
// once when it is resumed. The annotation espalier.dev/suspended is on it in between.
func (s *Switches[Self, T, CT]) CreateOnly() Self { return s.with(createOnly, false) }

// TakeOverFrom has fields that are not desired removed from objects that an earlier release of the operator created
// and updated under the names of these field managers, before it applied anything. Without the switch such fields
// stay: a second container, an annotation. An event FieldsStay names them, and their manager, when the node first
// applies to the object.
//
// It acts once for each object, when the node first applies to it, or, if the switch comes later, as long as one of the
// managers still owns the owner reference. Only objects that the resource controls are taken over, and finalizers stay.
// What the names write later stays, too. The name that controller-runtime gives an operator is that of its binary, such
// as "manager", which others have as well: before it is taken over, no field of theirs that has to stay may be on the
// objects. The field TakeOverFrom of the root does the same for all nodes.
func (s *Switches[Self, T, CT]) TakeOverFrom(managers ...string) Self {
	s.earlier = managers
	return s.with(takeOverFrom, len(managers) == 0)
}

// Recreates has the node delete an object and create it again if the API server refuses a change of an immutable field,
// see the field RecreateImmutable of [reconcilers.ChildReconciler].
func (s *Switches[Self, T, CT]) Recreates() Self { return s.with(recreates, false) }

// Labeled has the node put its name on its objects as the label [reconcilers.NodeLabel], and count only such objects as
// its own. It is needed if several nodes of a tree own objects of one type. The name must not change later.
func (s *Switches[Self, T, CT]) Labeled() Self { return s.with(labeled, false) }

// Auxiliary has a feature do without the objects: its [reconcilers.Supervisor] is told that neither an error nor the
// health counts. An error is logged and not returned, so the nodes after this one run. The node is tried again after
// ten seconds, and later each time, at last after five minutes, unless the error is durable. RetryAfter gives another
// time. On deletion, and on [reconcilers.Withdraw], an error is returned.
func (s *Switches[Self, T, CT]) Auxiliary() Self { return s.with(auxiliary, false) }

// Unchecked has a feature not wait until the objects are healthy: its [reconcilers.Supervisor] is told that their
// health does not count, and nodes that are After this one run as soon as they exist. An error counts.
func (s *Switches[Self, T, CT]) Unchecked() Self { return s.with(unchecked, false) }

// Health gives a rule for how an object is, in place of those of its kind. It counts for the condition, for a feature,
// and for nodes that are After this one. The condition has the reason of the rule if that gives one that the API server
// accepts. It must not change the object.
func (s *Switches[Self, T, CT]) Health(rule func(live CT) apis.Health) Self {
	s.health = rule
	return s.with(hasHealth, rule == nil)
}

// Suspension gives a rule for how an object is suspended, in place of that of its kind.
func (s *Switches[Self, T, CT]) Suspension(rule health.Suspension) Self {
	s.suspension = &rule
	return s.with(hasSuspension, false)
}

// Guard has the node wait while the function returns a text, which says what for. Existing objects stay as they are
// meanwhile. The function is asked in each request, but not before a deletion. An object that exists is suspended and
// resumed in spite of it. The function may read tracked objects, whose events bring the resource back.
func (s *Switches[Self, T, CT]) Guard(guard func(ctx context.Context, resource T) (waits string, err error)) Self {
	s.guard = guard
	return s.with(guarded, guard == nil)
}

// RetryAfter has the resource reconciled again after that time while an object is not ready, an error is not returned,
// or the node waits. Default: an event has to bring it back, but for an error of an auxiliary object.
func (s *Switches[Self, T, CT]) RetryAfter(delay time.Duration) Self {
	s.retryAfter = delay
	return s.with(retries, false)
}

// SetupWithManager validates, watches the type of the objects, and checks that the resource can have the condition.
func (s *Switches[Self, T, CT]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := s.Validate(ctx); err != nil {
		return err
	}
	if err := checkStatus(ctx, s.word, s.name, s.condition); err != nil {
		return err
	}
	if s.has(readOnly) && s.has(unwatched) {
		return nil
	}
	if s.has(readOnly) {
		return reconcilers.WatchOptional(reconcilers.Enter(ctx, s.name), bldr, s.object)
	}
	s.learnScope(ctx, reconcilers.RetrieveResourceType(ctx))
	if err := s.Validate(ctx); err != nil {
		return err
	}
	used := s.used()
	if used == s.engine && s.finalized != nil && s.scope.objectsNamespaced.Load() == nil {
		// The type is not served, so it is not known yet which one is needed.
		if err := s.finalized.SetupWithManager(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return used.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks the switches, and what they make of the objects.
func (s *Switches[Self, T, CT]) Validate(ctx context.Context) error {
	if err := s.complete(); err != nil || s.has(readOnly) {
		return err
	}
	if err := s.used().Validate(ctx); err != nil {
		return s.errorf("must be valid: %w", err)
	}
	return nil
}

// complete makes the engine at the first call. It returns an error for what the author said.
func (s *Switches[Self, T, CT]) complete() error {
	s.once.Do(func() {
		if s.invalid = s.check(); s.invalid != nil {
			return
		}
		if gotype.IsNil(s.object) {
			s.invalid = s.errorf("must have a Type since none can be made of %s", reflect.TypeFor[CT]())
			return
		}
		s.builtInScope()
		s.engine = s.make(false)
		if s.mayBeFinalized() {
			s.finalized = s.make(true)
		}
	})
	return s.invalid
}

// Describe returns what the node does with the type of its objects, and what it waits for.
func (s *Switches[Self, T, CT]) Describe() reconcilers.Description {
	description := reconcilers.Description{
		Name: s.name,
		Uses: []reconcilers.Access{{Object: s.object, Verbs: []string{"get", "list", "watch"}, Optional: true}},
	}
	if s.complete() == nil && !s.has(readOnly) {
		description = s.used().Describe()
		if !s.isFinalized() && s.finalized != nil {
			description.Uses = append(description.Uses,
				reconcilers.Access{Verbs: []string{"patch"}, IfClusterScoped: s.object})
			description.Finalizers = append(description.Finalizers, s.finalized.Describe().Finalizers...)
		}
	}
	if s.has(unwatched) {
		description.Uses = s.unwatchedUses(description.Uses)
	}
	description.Kind, description.Detail = s.word, s.describe()
	description.Conditions, description.Order = conditions(s.condition), s.orderOf()
	return description
}
