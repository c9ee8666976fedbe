package reconcilers

import (
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observer is told what the nodes of the trees with a [Config] do: metrics, spans and a page of the trees are
// observers. [Config.WithObserver] adds one. Without an observer nothing is measured and no fact is made.
//
// The methods are called concurrently, for several requests.
// They must return soon, must make no request, and change nothing that they get. The request and its resource are on
// the context, see [RetrieveRequest].
type Observer interface {
	// Start is called before a node runs; for the node of a root, at the start of a request. The node, and what it
	// calls, gets the context that Start returns.
	Start(ctx context.Context, node *Node) context.Context

	// End is called after the node has run, with the context that Start returned. Nodes below it have ended before.
	End(ctx context.Context, node *Node, outcome Outcome)

	// Note is called for a fact about a node, which is one of
	//
	//   - [SetUp], once, for the node of a root;
	//   - [Woken], once in a request of a controller, for the node of a root;
	//   - [Write], [Saved], [Held], [Lagging], for what a node did or did not do with an object;
	//   - [Refused], for an error that a node shows on the resource, and does not return;
	//   - [Forgotten], for the node of a root, when its resource is gone;
	//   - what a node of another package passes to [Note].
	Note(ctx context.Context, node *Node, fact any)
}

// Node is a node of a tree, as observers know it.
type Node struct {
	// Root is the node of the root. That of the root is itself.
	Root *Node
	// Controller is the name of the controller, as in the metrics of controller-runtime. For a webhook it is the name
	// of its root.
	Controller string
	// Resource is the kind that the root reconciles. It may be empty for a root that is not set up.
	Resource schema.GroupVersionKind
	// Kind is the name of the node's Go type without type parameters, such as "ChildReconciler".
	Kind string
	// Name is the name that the author gave to the node. It is empty for a list of nodes.
	Name string
	// Path is the path that [Description.Walk] has for the node: unlike the path of an error it has no number of an
	// iteration and no key of an item.
	Path string
	// Label is the path without the indexes of lists. So it stays the same when the author adds a node to a list. Nodes
	// of the same name in one list have the same label.
	Label string
	// Conditions are the types of the conditions that the node sets on the resource.
	Conditions []string

	below nodesBelow
}

// State says in one word how a node ended.
type State string

const (
	// StateUnchanged means that the node returned no error and wrote nothing, and that its conditions are True.
	StateUnchanged State = "Unchanged"
	// StateChanged means that the node, or one below it, has written an object. Its conditions are True.
	StateChanged State = "Changed"
	// StateWaiting means that a condition of the node, or of one below it, is not True, or that it returned a quiet
	// error.
	StateWaiting State = "Waiting"
	// StateHalted means that the node returned [ErrHaltSubReconcilers] or [ErrDurable] and no other error, which keeps
	// others from running.
	StateHalted State = "Halted"
	// StateError means that the node returned another error, or panicked, or that it, or one below it, has told an
	// error as [Refused].
	StateError State = "Error"
)

// Outcome is how a node ended.
type Outcome struct {
	// State is how the node ended, in one word.
	State State
	// Err is the error that the node returned; nil if it returned none, or one such as [ErrQuiet] that says only how to
	// go on. A panic is an error. If nothing else failed, it is the first error that was told as [Refused].
	Err error
	// Class is the class of what the node returned, or else of Err, see [Classify]; empty if there is no error at all.
	Class Class
	// Took is how long the node ran, with all that is below it.
	Took time.Duration
	// Result is what the node returned beside Err. For a root it is what controller-runtime gets.
	Result Result
	// Writes is how many objects the node, and those below it, have written.
	Writes int
	// Conditions are those of the types that the node sets, as they are on the resource; for a root they are all
	// conditions of the resource. They are valid until End returns.
	Conditions []metav1.Condition
	// Resource is the resource as the node left it. It is nil for a root that found none or did not read it. It is
	// valid until End returns.
	Resource client.Object
}

// SetUp is the fact that a root was set up.
type SetUp struct {
	// Tree describes the root and its tree.
	Tree Description
	// Watched are the types that the nodes watch from the set-up on, one for each representation. The type of the
	// resource is not among them, nor are types that are watched when they are needed first.
	Watched []schema.GroupVersionKind
}

// Woken is the fact what brought a request about.
type Woken struct {
	// Causes has what happened since the request before, the oldest first. Of many it has the first and the last.
	Causes []Cause
}

// Cause is why a resource is reconciled.
type Cause struct {
	// Kind says what happened.
	Kind CauseKind
	// Object has kind, namespace and name of the object of an event. It is empty for the other kinds.
	Object string
}

// CauseKind says what happened that a resource is reconciled.
type CauseKind string

const (
	// CauseStart is the first event of an object that was there when the controller started.
	CauseStart CauseKind = "Start"
	// CauseCreated is the creation of an object.
	CauseCreated CauseKind = "Created"
	// CauseUpdated is the change of an object.
	CauseUpdated CauseKind = "Updated"
	// CauseDeleted is the deletion of an object.
	CauseDeleted CauseKind = "Deleted"
	// CauseResync is an event of an object that has not changed.
	CauseResync CauseKind = "Resync"
	// CauseRetry is an error of the request before, or a halt.
	CauseRetry CauseKind = "Retry"
	// CauseDelay is the end of the delay that the request before asked for.
	CauseDelay CauseKind = "Delay"
	// CauseOther is anything else, such as a watch that the author added to the builder.
	CauseOther CauseKind = "Other"
)

// ObjectRef names an object.
type ObjectRef struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// Write is the fact that a node wrote an object, or could not.
type Write struct {
	Object ObjectRef
	// Subresource is empty for the object itself.
	Subresource string
	// Verb is the verb of the request: create, update, patch, apply or delete.
	Verb string
	// Reason says why an object was created or deleted, or its finalizers were changed. It is empty for other writes:
	// what is desired differed. It has no values of an object.
	Reason string
	// Err is the error of the write, or nil.
	Err error
}

// Saved is the fact that a node made no request about some objects, because the API server is known to have what is
// desired.
type Saved struct {
	// Objects is the number of objects.
	Objects int
}

// Refused is the fact that a node shows an error on the resource, in a condition as a rule, and does not return it,
// because a retry does not help: the API server refused an object, or somebody else has its name. It counts as an error
// of the node and of those around it. A node of your own tells it by [Note].
type Refused struct {
	// Err is the error. Nil is ignored.
	Err error
}

// Held is the fact that a node did not write what differs, to spare the cluster.
type Held struct {
	Object ObjectRef
	Kind   HeldKind
}

// HeldKind says why something is not written.
type HeldKind string

const (
	// HeldFlapping means that what is desired was another in each of the last writes.
	HeldFlapping HeldKind = "Flapping"
	// HeldContested means that another client keeps undoing the write.
	HeldContested HeldKind = "Contested"
	// HeldRefused means that the API server has refused the same write.
	HeldRefused HeldKind = "Refused"
	// HeldLeft means that an object is not deleted which was the resource's and does not say so any more.
	HeldLeft HeldKind = "Left"
	// HeldText means that only a text of a condition differs, which is shown later.
	HeldText HeldKind = "Text"
)

// Lagging is the fact that the cache shows an older state of the resource than the root has written.
type Lagging struct{}

// Forgotten is the fact that the resource of the request is gone, or is none of the root's (see SkipResource of
// [ResourceReconciler]), so that nothing more will be told of it.
type Forgotten struct{}

// Note tells the observers a fact about the node of ctx, see [Observer]. Outside of a request with an observer it does
// nothing. A fact that is expensive to make is made only if [IsObserved].
func Note(ctx context.Context, fact any) {
	if o := observationOf(ctx); o != nil && IsObserved(ctx) {
		o.note(ctx, fact)
	}
}

// IsObserved reports whether an observer is told of what the code below ctx does.
func IsObserved(ctx context.Context) bool {
	s := contextOf(ctx).state
	return s != nil && s.observers != nil
}

// WithObserver returns a copy of c with observers beside those that it has. Roots with the config, and all nodes of
// their trees, tell them what they do.
func (c Config) WithObserver(observers ...Observer) Config {
	var all []Observer
	if c.observers != nil {
		all = append(all, c.observers.all...)
	}
	all = append(all, observers...)
	all = slices.DeleteFunc(all, func(o Observer) bool { return gotype.IsNil(o) })
	if len(all) > 0 {
		c.observers = &observerList{all: all}
	}
	return c
}
