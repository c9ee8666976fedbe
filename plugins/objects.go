package plugins

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// emptyOf returns an empty object of a kind.
func emptyOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// pass is what is known of the dependents of a resource in one request.
type pass struct {
	dependents []answer.Dependent
	// values are those that objects have yielded before, and found is what they yield now.
	values, found map[string]string
	// done are the dependents that are ready, and passed those that have no error, by their names.
	done, passed map[string]bool
}

func newPass(dependents []answer.Dependent, values map[string]string) *pass {
	p := &pass{
		dependents: dependents, values: values, found: map[string]string{},
		done: map[string]bool{}, passed: map[string]bool{},
	}
	// What is not known in this request stays as it was.
	for _, d := range dependents {
		for _, y := range d.Yields {
			if value, known := values[y.Name]; known {
				p.found[y.Name] = value
			}
		}
	}
	return p
}

type passKey struct{}

func withPass(ctx context.Context, p *pass) context.Context {
	return context.WithValue(ctx, passKey{}, p)
}

// passOf returns the pass of ctx, which is empty outside of one.
func passOf(ctx context.Context) *pass {
	if p, ok := ctx.Value(passKey{}).(*pass); ok {
		return p
	}
	return &pass{}
}

// leftOpen says that nobody knows what an object should be.
const leftOpen = "the plugin leaves open what the object should be"

// waitsFor says what a dependent waits for. It is empty if it waits for nothing.
func (p *pass) waitsFor(d answer.Dependent) string {
	var values []string
	for _, value := range d.Needs {
		if _, known := p.values[value]; !known {
			values = append(values, value)
		}
	}
	var names []string
	for _, name := range d.After {
		if !p.done[name] {
			names = append(names, name)
		}
	}
	switch {
	case len(values) > 0:
		return "waiting for the value " + strings.Join(values, ", ")
	case len(names) > 0:
		return "waiting for " + strings.Join(names, ", ")
	case d.Object == nil:
		return leftOpen
	case d.Independent || len(d.After)+len(d.Needs) > 0:
		return ""
	}
	for _, before := range p.dependents {
		if before.Name == d.Name {
			break
		}
		if !p.passed[before.Name] {
			return "waiting for " + before.Name + ", which is before it"
		}
	}
	return ""
}

// yield notes what an object yields.
func (p *pass) yield(d answer.Dependent, live *unstructured.Unstructured) {
	for _, y := range d.Yields {
		delete(p.found, y.Name)
		if live == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		if value, is := answer.At(live, y.Path); is {
			p.found[y.Name] = value
		}
	}
}

// objects is the node that keeps one dependent: the item of the loop around it. The nodes that it is made of are those
// of Owns, one for each combination of a kind, switches and a rule of health.
type objects[T client.Object] struct {
	name, condition string
	kinds           []schema.GroupVersionKind
	// set are the nodes of the kinds without a switch. They are set up.
	set []reconcilers.SubReconciler[T]

	mu     sync.Mutex
	byRule map[string]reconcilers.SubReconciler[T]
}

// maxRules is how many nodes are kept. A plugin that has more has them made again.
const maxRules = 256

func newObjects[T client.Object](name, condition string, kinds []schema.GroupVersionKind) *objects[T] {
	o := &objects[T]{name: name, condition: condition, kinds: kinds, byRule: map[string]reconcilers.SubReconciler[T]{}}
	for _, kind := range kinds {
		o.set = append(o.set, o.nodeOf(answer.Dependent{Kind: kind}))
	}
	return o
}

// SetupWithManager watches the kinds.
func (o *objects[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	for _, node := range o.set {
		if err := node.SetupWithManager(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// Describe shows the kinds.
func (o *objects[T]) Describe() reconcilers.Description {
	d := reconcilers.Description{Kind: "Dependent", Conditions: []string{o.condition}}
	for _, node := range o.set {
		kept := reconcilers.Describe(node)
		kept.Conditions = nil // one of them runs for a dependent
		d.Nodes = append(d.Nodes, kept)
	}
	return d
}

// Reconcile keeps the dependent of ctx as it should be, or deletes it if it is gone.
func (o *objects[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	d := espalier.ItemOf[answer.Dependent](ctx)
	if d.Name != "" && !reconcilers.CleansUp(ctx, resource) {
		return o.keep(ctx, resource, d)
	}
	d = answer.ByKey(reconcilers.ItemKey(ctx))
	at := o.indexOf(d.Kind)
	if at < 0 {
		// A kind that is only read leaves nothing behind.
		return reconcilers.Result{}, nil
	}
	d.Kind = o.kinds[at]
	return reconcilers.ReconcileNested(ctx, o.nodeOf(d), resource)
}

// indexOf returns the index of a kind, whatever its version. It is -1 for one that is only read.
func (o *objects[T]) indexOf(wanted schema.GroupVersionKind) int {
	return slices.IndexFunc(o.kinds, func(kind schema.GroupVersionKind) bool {
		return kind.GroupKind() == wanted.GroupKind()
	})
}

// keep keeps the dependent as it should be, and notes for those after it how it is.
func (o *objects[T]) keep(ctx context.Context, resource T, d answer.Dependent) (reconcilers.Result, error) {
	result, err := reconcilers.ReconcileNested(ctx, o.nodeOf(d), resource)
	p := passOf(ctx)
	p.passed[d.Name] = err == nil
	switch {
	case err != nil:
	case d.Auxiliary || d.Unchecked:
		p.done[d.Name] = p.waitsFor(d) == ""
	default:
		p.done[d.Name] = meta.IsStatusConditionTrue(statusfield.Of(resource).GetConditions(), o.condition)
	}
	return result, err
}

// nodeOf returns the node for a dependent.
func (o *objects[T]) nodeOf(d answer.Dependent) reconcilers.SubReconciler[T] {
	rule := d.Rule()
	o.mu.Lock()
	defer o.mu.Unlock()
	node, known := o.byRule[rule]
	if !known {
		if len(o.byRule) >= maxRules {
			clear(o.byRule)
		}
		node = o.newNode(d)
		o.byRule[rule] = node
	}
	return node
}

// newNode returns a node for the dependents with the kind, the switches and the rule of health of d.
func (o *objects[T]) newNode(d answer.Dependent) reconcilers.SubReconciler[T] {
	node := espalier.Owns(o.name, func(ctx context.Context, _ T) (*unstructured.Unstructured, error) {
		object := espalier.ItemOf[answer.Dependent](ctx).Object
		if object == nil {
			return nil, espalier.NotReady(espalier.ReasonWaiting, leftOpen)
		}
		return object.DeepCopy(), nil
	}).Type(emptyOf(d.Kind)).Guard(func(ctx context.Context, _ T) (string, error) {
		return passOf(ctx).waitsFor(espalier.ItemOf[answer.Dependent](ctx)), nil
	}).Observes(func(ctx context.Context, _ T, live *unstructured.Unstructured) error {
		passOf(ctx).yield(espalier.ItemOf[answer.Dependent](ctx), live)
		return nil
	})
	apply(d.ReadOnly, node.ReadOnly)
	apply(!d.ReadOnly, node.Labeled)
	apply(d.IgnoreAbsent, node.Optional)
	apply(d.CreateOnly, node.CreateOnly)
	apply(d.Unowned, node.Unowned)
	apply(d.Recreates, node.Recreates)
	apply(d.Auxiliary, node.Auxiliary)
	apply(d.Unchecked, node.Unchecked)
	if !d.Auxiliary && !d.Unchecked {
		node.Reports(o.condition)
	}
	if health := d.Health; health != nil {
		node.Health(func(live *unstructured.Unstructured) apis.Health { return health.Of(live) })
	}
	return node
}

// apply uses a switch if it is wanted.
func apply[N any](wanted bool, use func() N) {
	if wanted {
		use()
	}
}
