package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// digest identifies what a plugin was asked, and which plugin.
type digest [sha256.Size]byte

// memory is what is known of a resource from one request to the next.
type memory struct {
	request types.NamespacedName
	awake   *wakeups

	// dependents answer what asked stands for. They are known once a plugin has answered.
	asked      digest
	known      bool
	dependents []answer.Dependent
	// values are those that the objects yield. They are for the plugin and the type whose objects these are, from.
	values map[string]string
	from   string
	// last is which plugin has answered last, by the status of the resource at first. It is nil until one answers.
	last *answer.Last

	// problem is why there is no answer to what failed stands for, and until is when the plugin is asked again; zero
	// for never. Delay is the time between the last two attempts, and connections counts those of the plugin then.
	failed      digest
	problem     *problem
	until       time.Time
	delay       time.Duration
	connections int

	call *call
}

// newMemory returns a function that returns a memory that has nothing.
func newMemory(awake *wakeups, request types.NamespacedName) func() *memory {
	return func() *memory {
		awake.add(request)
		return &memory{request: request, awake: awake}
	}
}

// Close implements io.Closer. It is called when the resource is gone.
func (m *memory) Close() error {
	m.awake.remove(m.request)
	m.abandon()
	return nil
}

func (m *memory) abandon() {
	if m.call != nil {
		m.call.cancel()
		m.call = nil
	}
}

// yielded notes the values that the objects yield, and reports whether they are others than before.
func (m *memory) yielded(values map[string]string) bool {
	if maps.Equal(m.values, values) {
		return false
	}
	m.values = values
	return true
}

// valuesFor returns the values that are for a plugin.
func (m *memory) valuesFor(plugin found) map[string]string {
	if m.from != plugin.name+"/"+plugin.typ {
		return nil
	}
	return m.values
}

const (
	// patience is how long a request waits for an answer. A plugin that takes longer is waited for in the background,
	// so that it does not hold up other resources.
	patience = 200 * time.Millisecond
	// pollAnswer is when a request looks for the answer if nobody has woken it.
	pollAnswer = time.Second
	// firstRetry is when a plugin is asked again that did not answer. It doubles up to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// given is what a node has to do.
type given struct {
	// dependents are to be kept, if they are known.
	dependents []answer.Dependent
	known      bool
	// problem is why they may not be those that the resource needs now; nil if they are.
	problem *problem
	// reason is that of the condition if no dependent says how it is.
	reason string
	// again is when the resource has to be reconciled again; zero for never.
	again time.Duration
}

// checked reports whether a dependent says how it is.
func (g given) checked() bool {
	return slices.ContainsFunc(g.dependents, func(d answer.Dependent) bool { return !d.Auxiliary && !d.Unchecked })
}

// answer returns what is to be kept, and asks the plugin if need be.
func (n *Node[Type]) answer(ctx context.Context, resource Type, m *memory) (given, error) {
	typ, version := n.typ, ""
	if n.asks != nil {
		typ, version = n.asks(ctx, resource)
	}
	if typ == "" {
		m.abandon()
		return given{known: true, reason: reasonNotDesired}, nil
	}
	last := given{dependents: m.dependents, known: m.known}
	plugin, err := n.host.registry.find(n.category, typ, version)
	if errors.Is(err, errStarting) {
		// The resource is woken when it is known which plugins there are. Until then, what is shown stays as it is.
		return given{}, errors.Join(err, reconcilers.ErrQuiet)
	}
	if err != nil && !errors.As(err, &last.problem) {
		return given{}, err
	}
	if plugin.identity == "" {
		return last, nil
	}
	request, err := n.request(ctx, resource, plugin, m.valuesFor(plugin))
	if err != nil {
		return given{}, err
	}
	asked := digestOf(plugin.identity, request)
	switch {
	case m.known && m.asked == asked:
		// There is no need for the plugin.
		m.abandon()
		m.last.Generation = resource.GetGeneration()
		last.problem = nil
		return last, nil
	case plugin.caller == nil:
		return last, nil
	case m.failed == asked && m.holds(plugin, rtime.RetrieveNow(ctx)):
		return m.failing(ctx), nil
	}
	var patient time.Duration
	if m.call == nil || m.call.asked != asked {
		m.abandon()
		if n.pending.Load() < int64(n.host.Limits.Calls) {
			patient = patience
		}
		m.call = n.start(plugin, request, asked, m.request)
	}
	if !m.call.await(ctx, patient) {
		last.problem, last.again = &problem{ReasonAsking, plugin.name + " has not answered yet"}, pollAnswer
		return last, nil
	}
	n.note(ctx, resource, m, plugin)
	return m.failing(ctx), nil
}

// holds reports whether the plugin is not to be asked again yet. After the first fault, that it was started again is
// reason enough to ask: what was asked need not be what has ended it.
func (m *memory) holds(plugin found, now time.Time) bool {
	if m.problem == nil {
		return false
	}
	startedAgain := m.delay == firstRetry && m.connections != plugin.connections
	return m.until.IsZero() || now.Before(m.until) && !startedAgain
}

// failing returns what there is to keep, and why there may be no better answer.
func (m *memory) failing(ctx context.Context) given {
	got := given{dependents: m.dependents, known: m.known, problem: m.problem}
	if m.problem != nil && !m.until.IsZero() {
		got.again = m.until.Sub(rtime.RetrieveNow(ctx))
	}
	return got
}

// note notes the answer of a call that has ended.
func (n *Node[Type]) note(ctx context.Context, resource Type, m *memory, plugin found) {
	ended := m.call
	m.abandon()
	fail := func(reason, text string, again time.Duration) {
		if m.failed != ended.asked {
			m.delay = 0
		}
		m.failed, m.problem, m.until = ended.asked, &problem{reason, text}, time.Time{}
		if again > 0 {
			m.until = rtime.RetrieveNow(ctx).Add(again)
		}
	}
	if ended.err != nil {
		again := firstRetry
		if m.failed == ended.asked {
			again = min(max(2*m.delay, firstRetry), lastRetry)
		}
		fail(ReasonPluginUnavailable, fmt.Sprintf("%s: %s", plugin.name, explain(ended.err, n.host.Limits)), again)
		m.delay, m.connections = again, plugin.connections
		return
	}
	switch outcome := ended.response.GetOutcome().(type) {
	case *protocol.DependentsResponse_Dependents:
		dependents, err := answer.Check(outcome.Dependents.GetItems(), n.rules(ctx, resource))
		if err == nil {
			err = n.succeed(ctx, resource, m, plugin, dependents, outcome.Dependents.GetDropsAll())
		}
		if err != nil {
			fail(ReasonAnswerRefused, fmt.Sprintf("the answer of %s is refused: %s", plugin.name, err), 0)
			return
		}
		m.asked, m.known, m.dependents = ended.asked, true, dependents
		m.from, m.values = plugin.name+"/"+plugin.typ, m.valuesFor(plugin)
		m.failed, m.problem, m.until, m.delay = digest{}, nil, time.Time{}, 0
	case *protocol.DependentsResponse_NotReady:
		given := outcome.NotReady
		reason := given.GetReason()
		if !isReason(reason) {
			reason = reasonNotReady
		}
		var again time.Duration
		if given.GetRetryAfterSeconds() > 0 {
			again = max(time.Duration(given.GetRetryAfterSeconds())*time.Second, firstRetry)
		}
		fail(reason, message.StableWithin(given.GetMessage(), maxText), again)
	case *protocol.DependentsResponse_Invalid:
		text := message.List(outcome.Invalid.GetMessages(), maxMessages)
		fail(ReasonInvalid, message.StableWithin(text, maxText), 0)
	default:
		fail(ReasonAnswerRefused, fmt.Sprintf("the answer of %s is empty", plugin.name), 0)
	}
}

const (
	// reasonNotReady takes the place of a reason that a condition cannot have.
	reasonNotReady = "NotReady"
	// maxText is how long the text of a plugin may be that a condition has, and maxMessages is how many.
	maxText     = 1024
	maxMessages = 5
)

// isReason reports whether a condition may have that reason.
func isReason(text string) bool {
	if text == "" || len(text) > maxReason {
		return false
	}
	for i, r := range text {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

const maxReason = 100

// rules says what an answer for a resource may ask for.
func (n *Node[Type]) rules(ctx context.Context, resource Type) answer.Rules {
	return answer.Rules{
		Namespace: resource.GetNamespace(), Creates: n.createdKinds, Reads: n.readKinds,
		MaxDependents: n.host.Limits.Dependents,
		ClusterScoped: func(kind schema.GroupVersionKind) bool {
			config, err := reconcilers.RetrieveConfig(ctx)
			if err != nil || config.Client == nil {
				return false
			}
			namespaced, err := config.IsObjectNamespaced(emptyOf(kind))
			return err == nil && !namespaced // a kind that is not served is not known
		},
	}
}

// request returns what a plugin is asked.
func (n *Node[Type]) request(
	ctx context.Context, resource Type, plugin found, values map[string]string,
) (*protocol.DependentsRequest, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	kind, err := config.GroupVersionKindFor(resource)
	if err != nil {
		return nil, err
	}
	spec, err := specOf(resource)
	if err != nil {
		return nil, fmt.Errorf("unable to encode the spec of the resource: %w", err)
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	return &protocol.DependentsRequest{
		Type: plugin.typ, Version: plugin.version, Values: values,
		Owner: &protocol.Owner{
			ApiVersion: apiVersion, Kind: name,
			Namespace: resource.GetNamespace(), Name: resource.GetName(), Spec: spec,
		},
	}, nil
}

// specOf returns the spec of a resource as JSON, or nil if it has none.
func specOf(resource client.Object) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(resource)
	if err != nil {
		return nil, err
	}
	spec, has := fields["spec"]
	if !has {
		return nil, nil
	}
	return json.Marshal(spec)
}

// digestOf returns the digest of a request to a plugin.
func digestOf(identity string, request *protocol.DependentsRequest) digest {
	// The order of a map does not matter to it. A message of a few texts can be encoded.
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	sum := sha256.New()
	sum.Write([]byte(identity))
	sum.Write([]byte{0})
	sum.Write(text)
	return digest(sum.Sum(nil))
}
