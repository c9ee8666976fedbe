// Package recording records what code under test does: its calls to a client, its events, the objects that it tracks,
// and the order of all this.
package recording

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Client records what is written through it. Each write is recorded first, then offered to the reactors, then made. It
// is safe for concurrent use. Read its slices only when the code under test is done.
type Client struct {
	// Client makes the calls. Calls to it are not recorded.
	client.Client

	ApplyActions            []ApplyAction
	CreateActions           []clientgotesting.CreateAction
	UpdateActions           []clientgotesting.UpdateAction
	PatchActions            []clientgotesting.PatchAction
	DeleteActions           []clientgotesting.DeleteAction
	DeleteCollectionActions []clientgotesting.DeleteCollectionAction
	StatusUpdateActions     []clientgotesting.UpdateAction
	StatusPatchActions      []clientgotesting.PatchAction
	StatusApplyActions      []ApplyAction
	// SubResourceActions are the writes to all other subresources. No expectation covers them.
	SubResourceActions []clientgotesting.Action

	options Options

	// mu guards the slices above and the fields below.
	mu        sync.Mutex
	reactors  []clientgotesting.Reactor
	generated int
	reads     []Read
	// offered are the calls that were offered to the reactors; failing reports whether a reactor failed one.
	offered []string
	failing bool
}

// Options are the parts of a [Client].
type Options struct {
	// Add stores an object for AddGiven.
	Add func(obj client.Object) error
	// As returns a client of somebody else, whose calls are not recorded; nil is Client with another field manager.
	As func(manager string) client.Client
	// Inner is the client of the store, which Unwrap returns; nil for others.
	Inner client.WithWatch
	// Live is set for a client of an API server that generates names and serves all subresources itself.
	Live bool
	// Journal keeps the order of all writes; nil keeps none.
	Journal *Journal
}

var _ client.WithWatch = (*Client)(nil)

// NewClient returns a client that makes its calls with inner.
func NewClient(inner client.Client, options Options) *Client {
	c := &Client{Client: inner, options: options}
	if !options.Live {
		c.AddReactor("create", "*", c.generateName)
	}
	return c
}

// Unwrap returns the client of the store that the calls go to, nil if they go to another server.
func (c *Client) Unwrap() client.WithWatch { return c.options.Inner }

// generateName makes a name by a counter if an object asks for a generated one.
func (c *Client) generateName(action clientgotesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clientgotesting.CreateAction)
	if !ok {
		return false, nil, nil
	}
	obj, err := meta.Accessor(create.GetObject())
	if err != nil || obj.GetName() != "" || obj.GetGenerateName() == "" {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generated++
	obj.SetName(fmt.Sprintf("%s%03d", obj.GetGenerateName(), c.generated))
	return false, nil, nil
}

// AddGiven stores objects without the checks of a create. It panics if an object cannot be stored.
func (c *Client) AddGiven(objs ...client.Object) {
	for _, obj := range objs {
		if err := c.options.Add(obj); err != nil {
			panic(fmt.Errorf("cannot add a given object: %w", err))
		}
	}
}

// As returns a client of somebody else, with the name of a field manager. Its calls are not recorded.
func (c *Client) As(manager string) client.Client {
	if c.options.As == nil {
		return client.WithFieldOwner(c.Client, manager)
	}
	return c.options.As(manager)
}

// AddReactor adds a reaction to calls with the verb on objects of the kind, after all others. * matches any.
func (c *Client) AddReactor(verb, kind string, reaction clientgotesting.ReactionFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reactors = append(c.reactors, &clientgotesting.SimpleReactor{Verb: verb, Resource: kind, Reaction: reaction})
}

// PrependReactor is AddReactor, before all others.
func (c *Client) PrependReactor(verb, kind string, reaction clientgotesting.ReactionFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reactors = slices.Insert(c.reactors, 0,
		clientgotesting.Reactor(&clientgotesting.SimpleReactor{Verb: verb, Resource: kind, Reaction: reaction}))
}

// react offers an action to the reactors. It returns the answer of the last reactor that handled the action, or the
// first error.
func (c *Client) react(action clientgotesting.Action) (answer runtime.Object, err error) {
	c.mu.Lock()
	reactors := slices.Clone(c.reactors)
	c.offered = append(c.offered, action.GetVerb()+" "+action.GetResource().Resource)
	c.mu.Unlock()
	for _, reactor := range reactors {
		if !reactor.Handles(action) {
			continue
		}
		handled, obj, err := reactor.React(action)
		if !handled {
			continue
		}
		if err != nil {
			c.mu.Lock()
			c.failing = true
			c.mu.Unlock()
			return nil, err
		}
		if !gotype.IsNil(obj) {
			answer = obj
		}
	}
	return answer, nil
}

// do offers an action to the reactors, and makes the call if none of them fails.
func (c *Client) do(action clientgotesting.Action, call func() error) error {
	if _, err := c.react(action); err != nil {
		return err
	}
	return call()
}

// recordAction appends an action on the named object to one of the slices of c.
func recordAction[A clientgotesting.Action](c *Client, actions *[]A, action A, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*actions = append(*actions, action)
	c.options.Journal.add(writeLine(action, name))
}

// resourceOf returns what stands for the kind of obj in an action.
func (c *Client) resourceOf(obj runtime.Object) (schema.GroupVersionResource, error) {
	kind, err := objects.KindOf(obj, c.Scheme())
	return resourceFor(kind), err
}

// Get implements [client.Client].
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return err
	}
	action := clientgotesting.NewGetAction(resource, key.Namespace, key.Name)
	return c.do(action, func() error {
		err := c.Client.Get(ctx, key, obj, opts...)
		c.recordRead(resource, key, err)
		return err
	})
}

// List implements [client.Client].
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	resource, err := c.resourceOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := resource.GroupVersion().WithKind(resource.Resource)
	action := clientgotesting.NewListAction(resource, kind, options.Namespace, *options.AsListOptions())
	return c.do(action, func() error { return c.Client.List(ctx, list, opts...) })
}

// Watch implements [client.WithWatch], for clients that can watch.
func (c *Client) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	inner, ok := c.Client.(client.WithWatch)
	if !ok {
		return nil, fmt.Errorf("%T cannot watch", c.Client)
	}
	resource, err := c.resourceOf(list)
	if err != nil {
		return nil, err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	action := clientgotesting.NewWatchAction(resource, options.Namespace, *options.AsListOptions())
	if _, err := c.react(action); err != nil {
		return nil, err
	}
	return inner.Watch(ctx, list, opts...)
}

// Create implements [client.Client].
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	action := clientgotesting.NewCreateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recordAction(c, &c.CreateActions, action.DeepCopy().(clientgotesting.CreateAction), nameOrPattern(obj))
	return c.do(action, func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update implements [client.Client].
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	action := clientgotesting.NewUpdateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recordAction(c, &c.UpdateActions, action.DeepCopy().(clientgotesting.UpdateAction), obj.GetName())
	return c.do(action, func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Client].
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := *(&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	action, err := c.patchAction(obj, obj, patch, options)
	if err != nil {
		return err
	}
	recordAction(c, &c.PatchActions, clientgotesting.PatchAction(action), obj.GetName())
	return c.do(action, func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// patchAction returns the action of patching obj, or a subresource of it, with the patch for body.
func (c *Client) patchAction(
	obj, body client.Object, patch client.Patch, opts metav1.PatchOptions, subresources ...string,
) (action clientgotesting.PatchActionImpl, err error) {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return action, err
	}
	data, err := patch.Data(body)
	if err != nil {
		return action, err
	}
	return clientgotesting.NewPatchSubresourceActionWithOptions(
		resource, obj.GetNamespace(), obj.GetName(), patch.Type(), data, opts, subresources...), nil
}

// Apply implements [client.Client].
func (c *Client) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := *(&client.ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	action, err := NewApplyAction(obj, "", options)
	if err != nil {
		return err
	}
	recordAction(c, &c.ApplyActions, ApplyAction(action.snapshot()), action.Name)
	return c.do(action, func() error { return c.Client.Apply(ctx, obj, opts...) })
}

// Delete implements [client.Client].
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	action := clientgotesting.NewDeleteActionWithOptions(resource, obj.GetNamespace(), obj.GetName(), options)
	recordAction(c, &c.DeleteActions, clientgotesting.DeleteAction(action), obj.GetName())
	return c.do(action, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// DeleteAllOf implements [client.Client].
func (c *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	resource, err := c.resourceOf(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	action := clientgotesting.NewDeleteCollectionActionWithOptions(
		resource, options.Namespace, *options.AsDeleteOptions(), *options.AsListOptions())
	recordAction(c, &c.DeleteCollectionActions, clientgotesting.DeleteCollectionAction(action), "*")
	return c.do(action, func() error { return c.Client.DeleteAllOf(ctx, obj, opts...) })
}
