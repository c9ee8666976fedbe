package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The reasons of the condition of a capability that say why its dependents may not be those that the resource needs
// now. Other reasons are those of the dependents, and those that a plugin gives.
const (
	// ReasonNoPlugin means that no plugin provides the capability. It goes on when one appears.
	ReasonNoPlugin = "NoPlugin"
	// ReasonSeveralPlugins means that several plugins provide it, and the host prefers none of them.
	ReasonSeveralPlugins = "SeveralPlugins"
	// ReasonPluginUnavailable means that the plugin does not run, or did not answer. It is asked again.
	ReasonPluginUnavailable = "PluginUnavailable"
	// ReasonAnswerRefused means that the plugin asked for what it must not, or would drop all that exists, or that of
	// another plugin. It is asked again when the resource, or the plugin, has changed.
	ReasonAnswerRefused = "AnswerRefused"
	// ReasonInvalid means that the plugin says that the spec of the resource is not valid.
	ReasonInvalid = "Invalid"
	// ReasonAsking means that the plugin has not answered yet.
	ReasonAsking = "Asking"
)

// Node keeps the objects that a plugin gives for a resource as they should be. [Capability] returns it.
type Node[Type client.Object] struct {
	host                    *Host
	category, typ           string
	name, condition         string
	creates, reads          []client.Object
	asks                    func(ctx context.Context, resource Type) (typ, version string)
	createdKinds, readKinds []schema.GroupVersionKind

	once     sync.Once
	invalid  error
	loop     *reconcilers.ForEach[Type, answer.Dependent]
	objects  *objects[Type]
	memories reconcilers.ResourceState[*memory]
	awake    wakeups
	// pending counts the calls that are under way.
	pending atomic.Int64
}

var _ reconcilers.SubReconciler[client.Object] = (*Node[client.Object])(nil)

// Capability returns a node that keeps the objects as they should be which a plugin gives for the resource, as Owns of
// package espalier keeps one. The plugin is that of the host for a category and a type. The resource needs a namespace,
// and an [apis.ItemsStatus] in its status, where the names and kinds of the dependents are recorded before they exist.
//
//   - Runs: asks the plugin, if the resource has changed since it was asked, or a value that an object yields, or the
//     plugin. Then it keeps the objects, in their order. If there is no answer, those of the last answer are kept.
//   - Stops: never on its own. A slow plugin is waited for in the background.
//   - On error: what is wrong with the plugin, or with its answer, is said by the condition, and nothing is deleted. An
//     error of an object is that of the node, as with Owns; it does not keep the others from being kept, but for those
//     that wait for it.
//   - On deletion: deletes the objects, in no particular order and without asking the plugin. Those that are unowned
//     stay.
//
// The name of the node is category-type. It must not change later, and no two nodes of a tree have the same.
func Capability[Type client.Object](host *Host, category, typ string) *Node[Type] {
	n := &Node[Type]{host: host, category: category, typ: typ}
	n.name = strings.ToLower(strings.Trim(category+"-"+typ, "-"))
	return n
}

// Reports gives the type of the condition that says how the capability is. Required.
func (n *Node[Type]) Reports(condition string) *Node[Type] {
	n.condition = condition
	return n
}

// Creates gives objects of the kinds that plugins may have created, such as &appsv1.Deployment{}. An object that is not
// of a kind of Kubernetes itself has to carry its kind. At least one kind is required. All of them are watched, and the
// rules that are derived from the tree allow to write them. A kind has to stay in the list while there are objects of
// it.
func (n *Node[Type]) Creates(objects ...client.Object) *Node[Type] {
	n.creates = append(n.creates, objects...)
	return n
}

// Reads gives objects of the kinds of which plugins may have objects of others read, in the namespace of the resource.
// What such an object yields is sent to the plugin, and plugins can find out which objects there are. Default: none.
func (n *Node[Type]) Reads(objects ...client.Object) *Node[Type] {
	n.reads = append(n.reads, objects...)
	return n
}

// Asks has a function say which type and version the resource asks for. An empty type: none, so what there is of the
// capability is deleted. An empty version: any. Default: the type of [Capability] in any version.
func (n *Node[Type]) Asks(asks func(ctx context.Context, resource Type) (typ, version string)) *Node[Type] {
	n.asks = asks
	return n
}

func (n *Node[Type]) init() {
	n.once.Do(func() {
		if n.invalid = n.check(); n.invalid != nil {
			n.invalid = fmt.Errorf("Capability %q %w", n.name, n.invalid)
			return
		}
		n.host.init()
		n.objects = newObjects[Type](n.name, n.condition, n.createdKinds)
		n.loop = &reconcilers.ForEach[Type, answer.Dependent]{
			Name: n.name, Reconciler: n.objects, Key: answer.Dependent.Key,
			Items: func(ctx context.Context, _ Type) ([]answer.Dependent, error) {
				return passOf(ctx).dependents, nil
			},
		}
	})
}

func (n *Node[Type]) check() (err error) {
	switch {
	case n.host == nil:
		return errors.New("must have a Host")
	case n.category == "":
		return errors.New("must have a category")
	case n.typ == "" && n.asks == nil:
		return errors.New("must have a type, or a function Asks")
	case n.condition == "":
		return errors.New("must report a condition: use Reports")
	case len(n.creates)+len(n.reads) == 0:
		return errors.New("must say which kinds plugins may ask for: use Creates")
	}
	if n.createdKinds, err = kindsOf(n.creates); err != nil {
		return err
	}
	n.readKinds, err = kindsOf(n.reads)
	return err
}

// kindsOf returns the kinds of objects.
func kindsOf(objects []client.Object) ([]schema.GroupVersionKind, error) {
	kinds := make([]schema.GroupVersionKind, len(objects))
	for i, object := range objects {
		if gotype.IsNil(object) {
			return nil, errors.New("must not have nil as the object of a kind")
		}
		kinds[i] = object.GetObjectKind().GroupVersionKind()
		if !kinds[i].Empty() {
			continue
		}
		var err error
		if kinds[i], err = apiutil.GVKForObject(object, clientgoscheme.Scheme); err != nil {
			return nil, fmt.Errorf("must have the apiVersion and the kind in the %T: %w", object, err)
		}
	}
	return kinds, nil
}

// Validate checks that what is required is there.
func (n *Node[Type]) Validate(context.Context) error {
	n.init()
	return n.invalid
}

// SetupWithManager validates, watches the kinds, and has the resources woken whose plugin appears, goes or answers.
func (n *Node[Type]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := n.Validate(ctx); err != nil {
		return err
	}
	if err := n.loop.SetupWithManager(ctx, mgr, bldr); err != nil {
		return err
	}
	for _, kind := range n.readKinds {
		if err := reconcilers.WatchOptional(reconcilers.Enter(ctx, n.name), bldr, emptyOf(kind)); err != nil {
			return err
		}
	}
	if bldr == nil {
		return nil
	}
	bldr.WatchesRawSource(source.Func(
		func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcilers.Request]) error {
			n.awake.startWith(queue)
			stop := n.host.registry.watch(func(category string) {
				if category == allCategories || strings.EqualFold(category, n.category) {
					n.awake.all()
				}
			})
			context.AfterFunc(ctx, stop)
			return nil
		}))
	return nil
}

// Describe shows the kinds, and the condition.
func (n *Node[Type]) Describe() reconcilers.Description {
	n.init()
	if n.invalid != nil {
		return reconcilers.Description{Kind: "Capability", Name: n.name}
	}
	d := n.loop.Describe()
	d.Kind, d.Detail = "Capability", capabilityName(n.category, cmp.Or(n.typ, "*"), "")
	for _, kind := range n.readKinds {
		d.Uses = append(d.Uses, reconcilers.Access{
			Object: emptyOf(kind), Verbs: []string{"get", "list", "watch"}, Optional: true,
		})
	}
	return d
}

// Reconcile keeps what the plugin gives, see [Capability].
func (n *Node[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	var none reconcilers.Result
	if err := n.Validate(ctx); err != nil {
		return none, err
	}
	at := reconcilers.Enter(ctx, n.name)
	if resource.GetNamespace() == "" {
		err := errors.New("a capability is only for a resource with a namespace")
		return none, reconcilers.Failed(at, nil, errors.Join(err, reconcilers.ErrDurable))
	}
	if reconcilers.CleansUp(ctx, resource) {
		// What there is, is known by the records.
		return n.loop.Reconcile(withPass(ctx, &pass{}), resource)
	}
	defer n.memories.End(at)
	known := n.memories.Of(at, newMemory(&n.awake, client.ObjectKeyFromObject(resource)))
	got, err := n.answer(at, resource, known)
	if err != nil {
		return none, reconcilers.Failed(at, nil, err)
	}
	result := reconcilers.Result{RequeueAfter: got.again}
	if got.known {
		p := newPass(got.dependents, known.values)
		var kept reconcilers.Result
		kept, err = n.loop.Reconcile(withPass(ctx, p), resource)
		n.record(ctx, resource, known.last)
		result = reconcilers.AggregateResults(result, kept)
		if known.yielded(p.found) {
			result = reconcilers.AggregateResults(result, reconcilers.Result{RequeueAfter: soon})
		}
	}
	n.report(at, resource, got)
	return result, err
}

// soon is when a resource is reconciled again that has something new to ask.
const soon = time.Millisecond

// report says how the capability is, as far as the dependents do not.
func (n *Node[Type]) report(ctx context.Context, resource Type, got given) {
	if got.problem == nil {
		if got.known && !got.checked() {
			reconcilers.ReportCondition(ctx, resource, metav1.Condition{
				Type: n.condition, Status: metav1.ConditionTrue, Reason: cmp.Or(got.reason, reasonReady),
			})
		}
		return
	}
	condition := metav1.Condition{
		Type: n.condition, Status: metav1.ConditionFalse, Reason: got.problem.reason, Message: got.problem.text,
	}
	if condition.Reason == ReasonAsking {
		condition.Status = metav1.ConditionUnknown
	}
	reconcilers.ReportCondition(ctx, resource, condition)
	reconcilers.NotDone(ctx)
	supervisor := reconcilers.SupervisorOf(ctx)
	if supervisor == nil || supervisor.Supervision() != reconcilers.Maintain {
		return
	}
	supervisor.Observe(reconcilers.ObservedObject{
		Node:   reconcilers.RetrievePath(ctx),
		Health: &apis.Health{State: apis.StateBlocked, Reason: condition.Reason, Message: condition.Message},
	})
}

// reasonReady and reasonNotDesired are those that Owns gives.
const (
	reasonReady      = "Ready"
	reasonNotDesired = "NotDesired"
)
