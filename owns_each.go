package espalier

import (
	"context"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Children is a node that keeps a set of child objects of one type as it should be. [OwnsEach] returns it.
type Children[Type, ChildType client.Object] struct {
	Switches[*Children[Type, ChildType], Type, ChildType]
}

// OwnsEach returns a node that keeps the objects that desired returns as [Owns] keeps one. A child is identified by its
// namespace and name: a new name is a new object, and a child whose name is not returned any more is deleted.
//
//   - Runs: desired, and makes each child agree with it, in the order of the names. Then, in the same request, it
//     deletes the children that are not desired any more.
//   - Stops: never between children. Each is tried, whatever became of those before it: a create that fails, and a new
//     child that is not ready, hold no deletion.
//   - On error: as [Owns]. Errors that are returned are joined, in the order in which the children are tried. The
//     condition names up to five children that failed, and says how many more there are.
//   - On deletion: deletes the children. Those that are Unowned stay.
func OwnsEach[Type, ChildType client.Object](
	name string, desired func(ctx context.Context, resource Type) ([]ChildType, error),
) *Children[Type, ChildType] {
	children := &Children[Type, ChildType]{}
	children.init(children, "OwnsEach", name, desired)
	children.make = children.literal
	return children
}

// Observes has the node call a function that copies something of the live objects into the status of the resource, see
// [Child.Observes]. The objects are in the order of their names.
func (c *Children[Type, ChildType]) Observes(
	observe func(ctx context.Context, resource Type, live []ChildType) error,
) *Children[Type, ChildType] {
	c.copy = observe
	return c.with(observes, observe == nil)
}

// literal returns the literal that the node is made of.
func (c *Children[T, CT]) literal(finalized bool) engine[T] {
	free := finalized || c.has(unowned)
	set := &reconcilers.ChildSetReconciler[T, CT, client.ObjectList]{
		Name:                       c.name,
		ChildType:                  c.object,
		ChildListType:              c.listType(),
		ReflectedChildErrorReasons: reflectedReasons,
		DesiredChildren:            c.desiredOf,
		IdentifyChild:              c.identityOf,
		ReflectChildrenStatusOnParent: func(ctx context.Context, _ T, result reconcilers.ChildSetResult[CT]) {
			p := passOf[CT](ctx)
			p.live, p.reflected = result.Existing(), failedChildren(&result)
		},
		ChildObjectManager: c.manager(finalized),
		OptionalKind:       true,
		ContinueOnError:    true,
		LabelChildren:      c.has(labeled) || free,
		RecreateImmutable:  c.has(recreates),
	}
	set.SkipOwnerReference, set.ListOptions, set.OurChild = c.found(free)
	return set
}

// identityOf returns what identifies an object among those of the node.
func (s *Switches[Self, T, CT]) identityOf(object CT) string {
	if namespace := object.GetNamespace(); namespace != "" && s.anywhere.Load() {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// maxFailed is how many children that failed are named.
const maxFailed = 5

// failedChildren returns the errors of children as one, or nil if there are none.
func failedChildren[CT client.Object](result *reconcilers.ChildSetResult[CT]) error {
	err := result.AggregateError()
	var failed []string
	for _, child := range result.Children {
		if child.Err != nil {
			failed = append(failed, child.Id+": "+child.Err.Error())
		}
	}
	if len(failed) < 2 {
		return err
	}
	text := strings.Join(failed[:min(len(failed), maxFailed)], "; ")
	if more := len(failed) - maxFailed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &severalError{err, text}
}

// severalError names the children that failed.
type severalError struct {
	error
	text string
}

func (e *severalError) Error() string { return e.text }

func (e *severalError) Unwrap() error { return e.error }

// Errors returns the errors of the children.
func (e *severalError) Errors() []error {
	several, _ := e.error.(interface{ Errors() []error })
	return several.Errors()
}
