// Package differential makes each call of a row on two API servers, one in memory and a real one, and reports where
// they answer in different ways. The row gets the answers of the one in memory.
package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/mapped"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Comparison has the differences between the two API servers in one row. It is safe for concurrent use.
type Comparison struct {
	server *mapped.Server
	// mu makes the two calls of one call of the row one step.
	mu sync.Mutex
	// versions are the last resource versions in memory that the row has seen, by object.
	versions map[store.Key]string
	// rests are what the server lists after a page, by the token of memory for the next one.
	rests       map[string][]runtime.Object
	differences []Difference
}

// New returns a comparison with a server.
func New(server *mapped.Server) *Comparison {
	return &Comparison{server: server, versions: map[store.Key]string{}, rests: map[string][]runtime.Object{}}
}

// Difference is what was different about a call.
type Difference struct {
	// Call is the call; zero for what was beside all calls.
	Call store.Call
	// Text says what is different, as far as possible as the rule that one of the servers lacks.
	Text string
}

// String returns the call and the text.
func (d Difference) String() string {
	if d.Call.Verb == "" {
		return d.Text
	}
	return d.Call.String() + ": " + d.Text
}

// Rule is String for all objects of the kind.
func (d Difference) Rule() string {
	d.Call.Namespace, d.Call.Name = "", ""
	return d.String()
}

// First returns the first difference. After it the two servers may have different states, so that others may be its
// consequences.
func (c *Comparison) First() (first Difference, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.differences) == 0 {
		return first, false
	}
	return c.differences[0], true
}

// Note notes a difference beside all calls.
func (c *Comparison) Note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.differences = append(c.differences, Difference{Text: err.Error()})
}

// Client returns a client that makes each call with memory, and then with server. Watches are those of memory.
func (c *Comparison) Client(memory, server client.WithWatch) client.WithWatch {
	return &tee{WithWatch: memory, server: server, comparison: c}
}

// tee makes the calls of one client.
type tee struct {
	// WithWatch is the client of memory.
	client.WithWatch
	server     client.WithWatch
	comparison *Comparison
}

// call is a call that is made on both servers.
type call struct {
	store.Call
	memory, server func() error
	// inMemory and onServer are what is answered, after the call. They are nil if nothing is.
	inMemory, onServer runtime.Object
	// writes says that an answer shows whether the object was written.
	writes bool
}

// make makes a call on both servers, and compares.
func (t *tee) make(c call) error {
	t.comparison.mu.Lock()
	defer t.comparison.mu.Unlock()
	inMemory := c.memory()
	onServer := c.server()
	t.comparison.compare(c, inMemory, onServer)
	return inMemory
}

// callOf returns a call about an object.
func (t *tee) callOf(verb store.Verb, obj client.Object, dryRun []string) store.Call {
	name := obj.GetName()
	if name == "" && obj.GetGenerateName() != "" {
		name = obj.GetGenerateName() + "*"
	}
	return store.Call{
		Verb: verb, Kind: t.kindOf(obj), Namespace: obj.GetNamespace(), Name: name, DryRun: len(dryRun) > 0,
	}
}

// kindOf returns the kind of an object, or of the items of a list; it is empty if it is not known.
func (t *tee) kindOf(obj runtime.Object) schema.GroupVersionKind {
	kind, _ := t.GroupVersionKindFor(obj) // The call itself returns the error.
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind
}

// Get implements [client.Client].
func (t *tee) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	other := copyOf(obj)
	return t.make(call{
		Call:     store.Call{Verb: store.Get, Kind: t.kindOf(obj), Namespace: key.Namespace, Name: key.Name},
		memory:   func() error { return t.WithWatch.Get(ctx, key, obj, opts...) },
		server:   func() error { return t.server.Get(ctx, key, other, opts...) },
		inMemory: obj, onServer: other,
	})
}

// Create implements [client.Client].
func (t *tee) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	other := copyOf(obj)
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call:   t.callOf(store.Create, obj, options.DryRun),
		memory: func() error { return t.WithWatch.Create(ctx, obj, opts...) },
		server: func() error {
			if other.GetName() == "" {
				other.SetName(obj.GetName())
			}
			return t.server.Create(ctx, other, opts...)
		},
		inMemory: obj, onServer: other,
	})
}

// Update implements [client.Client].
func (t *tee) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	other := copyOf(obj)
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call:     t.callOf(store.Update, obj, options.DryRun),
		memory:   func() error { return t.WithWatch.Update(ctx, obj, opts...) },
		server:   func() error { return t.server.Update(ctx, other, opts...) },
		inMemory: obj, onServer: other, writes: true,
	})
}

// Patch implements [client.Client].
func (t *tee) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	patch = client.RawPatch(patch.Type(), data)
	other := copyOf(obj)
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call:     t.callOf(store.Patch, obj, options.DryRun),
		memory:   func() error { return t.WithWatch.Patch(ctx, obj, patch, opts...) },
		server:   func() error { return t.server.Patch(ctx, other, patch, opts...) },
		inMemory: obj, onServer: other, writes: true,
	})
}

// Apply implements [client.Client].
func (t *tee) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	return t.apply(obj, "", options.DryRun,
		func(config runtime.ApplyConfiguration) error { return t.WithWatch.Apply(ctx, config, opts...) },
		func(config runtime.ApplyConfiguration) error { return t.server.Apply(ctx, config, opts...) },
	)
}

func (t *tee) apply(
	obj runtime.ApplyConfiguration, subresource string, dryRun []string,
	memory, server func(runtime.ApplyConfiguration) error,
) error {
	other, err := sent(obj)
	if err != nil {
		return err
	}
	applies := t.callOf(store.Apply, other, dryRun)
	applies.Subresource = subresource
	answer := &unstructured.Unstructured{}
	return t.make(call{
		Call: applies,
		memory: func() error {
			if err := memory(obj); err != nil {
				return err
			}
			answered, err := sent(obj)
			if err == nil {
				answer.Object = answered.Object
			}
			return nil
		},
		server:   func() error { return server(client.ApplyConfigurationFromUnstructured(other)) },
		inMemory: answer, onServer: other, writes: true,
	})
}

// sent returns an apply configuration as an object.
func sent(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("the apply configuration is not an object: %w", err)
	}
	return u, nil
}

// Delete implements [client.Client].
func (t *tee) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	other := copyOf(obj)
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call:   t.callOf(store.Delete, obj, options.DryRun),
		memory: func() error { return t.WithWatch.Delete(ctx, obj, opts...) },
		server: func() error { return t.server.Delete(ctx, other, opts...) },
	})
}

// DeleteAllOf implements [client.Client].
func (t *tee) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	other := copyOf(obj)
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	return t.make(call{
		Call: store.Call{
			Verb: store.DeleteCollection, Kind: t.kindOf(obj), Namespace: options.Namespace,
			DryRun: len(options.DryRun) > 0,
		},
		memory: func() error { return t.WithWatch.DeleteAllOf(ctx, obj, opts...) },
		server: func() error { return t.server.DeleteAllOf(ctx, other, opts...) },
	})
}

func copyOf(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }
