package reconcilers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observerList has the observers of a config. A config has a pointer to it, because configs are compared.
type observerList struct {
	all []Observer
}

func (l *observerList) start(ctx context.Context, node *Node) context.Context {
	for _, observer := range l.all {
		ctx = observer.Start(ctx, node)
	}
	return ctx
}

func (l *observerList) note(ctx context.Context, node *Node, fact any) {
	for _, observer := range l.all {
		observer.Note(ctx, node, fact)
	}
}

// end calls the observers in the reverse order of start.
func (l *observerList) end(ctx context.Context, node *Node, outcome Outcome) {
	for i := len(l.all) - 1; i >= 0; i-- {
		l.all[i].End(ctx, node, outcome)
	}
}

// observation is the context of a node that runs while observers listen.
type observation struct {
	context.Context

	observers *observerList
	node      *Node
	parent    *observation
	began     time.Time
	writes    atomic.Int32
	// waits is true once a node below has ended as waiting.
	waits atomic.Bool
	// refused is what a node here or below has told as [Refused] first.
	refused atomic.Pointer[error]
	// halted is true for a root whose tree has halted. A root drops that error when it has written the status.
	halted atomic.Bool
}

type observationKey struct{}

func (o *observation) Value(key any) any {
	if key == (observationKey{}) {
		return o
	}
	return o.Context.Value(key)
}

func observationOf(ctx context.Context) *observation {
	o, _ := ctx.Value(observationKey{}).(*observation)
	return o
}

// startObservation tells the observers that a node runs.
func startObservation(
	ctx context.Context, observers *observerList, node *Node, parent *observation,
) (context.Context, *observation) {
	o := &observation{Context: ctx, observers: observers, node: node, parent: parent, began: time.Now()}
	return observers.start(o, node), o
}

func (o *observation) note(ctx context.Context, fact any) {
	switch fact := fact.(type) {
	case Write:
		for at := o; at != nil && fact.Err == nil; at = at.parent {
			at.writes.Add(1)
		}
	case Refused:
		for at := o; at != nil && fact.Err != nil; at = at.parent {
			at.refused.CompareAndSwap(nil, &fact.Err)
		}
	}
	o.observers.note(ctx, o.node, fact)
}

// errPanicked is the error of an outcome whose panic reaches the caller of the root.
var errPanicked = errors.New("the node panicked")

// end tells the observers how the node ended. Returned is false if it panicked.
func (o *observation) end(ctx context.Context, resource client.Object, result Result, err error, returned bool) {
	if !returned {
		err = errPanicked
	}
	outcome := Outcome{Took: time.Since(o.began), Result: result, Writes: int(o.writes.Load()), Resource: resource}
	if err != nil {
		outcome.Class = Classify(err)
	}
	if hidesFailure(err) {
		outcome.Err = err
	}
	if resource != nil {
		outcome.Conditions = o.conditions(resource)
	}
	outcome.State = o.state(&outcome, err)
	if refused := o.refused.Load(); refused != nil && outcome.State != StateError {
		outcome.State, outcome.Err, outcome.Class = StateError, *refused, Classify(*refused)
	}
	if p := o.parent; p != nil {
		p.waits.CompareAndSwap(false, outcome.State == StateWaiting)
		p.halted.CompareAndSwap(false, outcome.State == StateHalted && p.parent == nil)
	}
	o.observers.end(ctx, o.node, outcome)
}

// conditions returns the conditions of resource that the node sets; for a root, all.
func (o *observation) conditions(resource client.Object) []metav1.Condition {
	isRoot := o.parent == nil
	if !isRoot && len(o.node.Conditions) == 0 {
		return nil
	}
	all := statusfield.Of(resource).GetConditions()
	if isRoot {
		return all
	}
	own := make([]metav1.Condition, 0, len(o.node.Conditions))
	for _, conditionType := range o.node.Conditions {
		if condition := meta.FindStatusCondition(all, conditionType); condition != nil {
			own = append(own, *condition)
		}
	}
	return own
}

// state returns the state for the rest of an outcome, and the error that the node returned. The conditions of a root
// are those of its nodes, so that they do not count.
func (o *observation) state(outcome *Outcome, err error) State {
	isNotTrue := func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue }
	switch {
	case isHalt(err) && outcome.Err == nil, err == nil && o.halted.Load():
		return StateHalted
	case isQuiet(err) && !isDurable(err):
		return StateWaiting
	case err != nil:
		return StateError
	case o.waits.Load(), o.parent != nil && slices.ContainsFunc(outcome.Conditions, isNotTrue):
		return StateWaiting
	case outcome.Writes > 0:
		return StateChanged
	default:
		return StateUnchanged
	}
}

// observed is [ReconcileNested] while observers listen.
func observed[Type client.Object](
	ctx context.Context, s *requestState, node SubReconciler[Type], resource Type,
) (result Result, err error) {
	parent := observationOf(ctx)
	if parent == nil {
		return nested(ctx, s, node, resource)
	}
	within, o := startObservation(ctx, s.observers, parent.node.nested(ctx, node), parent)
	returned := false
	defer func() { o.end(within, resource, result, err, returned) }()
	result, err = nested(within, s, node, resource)
	returned = true
	return result, err
}

// maxNodesBelow limits how many nodes below one node are remembered. A tree has fewer; a function of the author may
// make a new node for each request.
const maxNodesBelow = 1024

// nodesBelow are the nodes below a node that have run.
type nodesBelow struct {
	mu    sync.RWMutex
	known map[nestedNode]*Node
}

// nestedNode identifies a node below another: by itself, or by the place of a list, which cannot be compared.
type nestedNode struct {
	node  any
	slice uintptr
}

// nested returns what observers know of a node below n. The context is that of its place.
func (n *Node) nested(ctx context.Context, node any) *Node {
	key := nestedNode{node: node}
	switch v := reflect.ValueOf(node); {
	case v.Kind() == reflect.Slice:
		key = nestedNode{node: v.Type(), slice: v.Pointer()}
	case !v.Comparable():
		key = nestedNode{node: v.Type()}
	}
	n.below.mu.RLock()
	known := n.below.known[key]
	n.below.mu.RUnlock()
	if known != nil {
		return known
	}
	made := n.describe(ctx, node)
	n.below.mu.Lock()
	defer n.below.mu.Unlock()
	if known := n.below.known[key]; known != nil {
		return known
	}
	if n.below.known == nil {
		n.below.known = map[nestedNode]*Node{}
	}
	if len(n.below.known) < maxNodesBelow {
		n.below.known[key] = made
	}
	return made
}

func (n *Node) describe(ctx context.Context, node any) *Node {
	d := Describe(node)
	at := pathOf(ctx)
	if d.Name != "" {
		at = &nodePath{name: d.Name, parent: at}
	}
	return &Node{
		Root: n.Root, Controller: n.Controller, Resource: n.Resource,
		Kind: d.Kind, Name: d.Name, Conditions: d.Conditions,
		Path: at.join((*nodePath).inTree), Label: at.join((*nodePath).inLabel),
	}
}

// request runs a request, and returns what controller-runtime gets.
func (r *rootParts[T]) request(
	ctx context.Context, req Request, p *requestState, run func(ctx context.Context) (Result, error),
) (Result, error) {
	if p.observers != nil {
		return r.observedRequest(ctx, req, p, run)
	}
	result, err := run(ctx)
	return r.returned(p, result, err)
}

// observedRequest is request while observers listen.
func (r *rootParts[T]) observedRequest(
	ctx context.Context, req Request, p *requestState, run func(ctx context.Context) (Result, error),
) (result Result, err error) {
	within, o := startObservation(ctx, p.observers, r.rootNode(), nil)
	if p.causes != nil {
		o.note(within, Woken{Causes: p.causes})
	}
	var ofTree error
	returned := false
	defer func() {
		r.watches.requestEnded(req, result, err)
		o.end(within, p.resourceSeen, result, ofTree, returned)
	}()
	result, ofTree = run(within)
	result, err = r.returned(p, result, ofTree)
	returned = true
	return result, err
}

// rootNode returns what observers know of the root.
func (r *rootParts[T]) rootNode() *Node {
	return r.observed.get(func() Node {
		resource := kindOf(r.config.Client, r.resourceType)
		controller := r.controllerName
		if controller == "" {
			// So does the builder of controller-runtime.
			controller = strings.ToLower(resource.Kind)
		}
		return Node{Controller: controller, Resource: resource, Kind: r.kind, Name: r.name}
	})
}

// observedRoot has what observers know of a root.
type observedRoot struct {
	once sync.Once
	node *Node
}

// get returns the node of the root, which is made once.
func (r *observedRoot) get(describe func() Node) *Node {
	r.once.Do(func() {
		node := describe()
		node.Root, node.Path, node.Label = &node, node.Name, node.Name
		r.node = &node
	})
	return r.node
}

// refOf names an object. The kind is empty if it is not known.
func refOf(c client.Client, obj client.Object) ObjectRef {
	ref := ObjectRef{GroupVersionKind: obj.GetObjectKind().GroupVersionKind(),
		Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if ref.Empty() && c != nil {
		ref.GroupVersionKind = kindOf(c, obj)
	}
	return ref
}

// String returns the kind, and the namespace and name joined by a slash.
func (r ObjectRef) String() string {
	return objectname.Text(r.Kind, r.Namespace, r.Name)
}
