package testing

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestClient is a client that can be prepared while a test runs. The Client of a config made by the harness is one.
type TestClient interface {
	client.Client

	// AddGiven stores objects without the checks of a create: they need neither a name nor a resource version. It panics if
	// an object cannot be stored.
	AddGiven(objs ...client.Object)
	// AddReactor lets a reaction react to calls with the verb on objects of the kind, after all others. * matches any.
	AddReactor(verb, kind string, reaction ReactionFunc)
	// PrependReactor is AddReactor, before all others.
	PrependReactor(verb, kind string, reaction ReactionFunc)
}

// recorder is a client that records what is written through it. Each write is recorded first, then offered to the
// reactors, then made. It is safe for concurrent use; its slices are to be read once the code under test is done.
type recorder struct {
	client  client.Client
	tracker clientgotesting.ObjectTracker
	// live says that the client is one of a real API server.
	live bool

	ApplyActions            []ApplyAction
	CreateActions           []CreateAction
	UpdateActions           []UpdateAction
	PatchActions            []PatchAction
	DeleteActions           []DeleteAction
	DeleteCollectionActions []DeleteCollectionAction
	StatusUpdateActions     []UpdateAction
	StatusPatchActions      []PatchAction
	StatusApplyActions      []ApplyAction
	// SubResourceActions are the writes to all other subresources. They are recorded for those who care; no expectation
	// covers them.
	SubResourceActions []Action

	// mu guards the slices above and what follows.
	mu        sync.Mutex
	reactors  []Reactor
	generated int
	// journal is where the order of all writes is kept; nil keeps none.
	journal *journal
}

var (
	_ TestClient       = (*recorder)(nil)
	_ client.WithWatch = (*recorder)(nil)
)

// NewFakeClientWrapper returns a TestClient that records what is written to client. Objects given later go to tracker; if
// it is nil they are created through client. The recorded actions are in exported fields of the result.
func NewFakeClientWrapper(client client.Client, tracker clientgotesting.ObjectTracker) *recorder {
	r := &recorder{client: client, tracker: tracker}
	r.AddReactor("create", "*", r.generateName)
	return r
}

// generateName names what asks for a generated name, by a counter.
func (r *recorder) generateName(action Action) (bool, runtime.Object, error) {
	create, ok := action.(CreateAction)
	if !ok {
		return false, nil, nil
	}
	obj, err := meta.Accessor(create.GetObject())
	if err != nil || obj.GetName() != "" || obj.GetGenerateName() == "" {
		return false, nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generated++
	obj.SetName(fmt.Sprintf("%s%03d", obj.GetGenerateName(), r.generated))
	return false, nil, nil
}

// AddGiven implements [TestClient].
func (r *recorder) AddGiven(objs ...client.Object) {
	for _, obj := range objs {
		if err := r.addGiven(obj); err != nil {
			panic(fmt.Errorf("cannot add a given object: %w", err))
		}
	}
}

func (r *recorder) addGiven(obj client.Object) error {
	stored, err := given(obj, r.client.Scheme())
	if err != nil {
		return err
	}
	if r.tracker != nil {
		return r.tracker.Add(stored)
	}
	stored.SetResourceVersion("")
	return r.client.Create(context.Background(), stored)
}

// AddReactor implements [TestClient].
func (r *recorder) AddReactor(verb, kind string, reaction ReactionFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reactors = append(r.reactors, &clientgotesting.SimpleReactor{Verb: verb, Resource: kind, Reaction: reaction})
}

// PrependReactor implements [TestClient].
func (r *recorder) PrependReactor(verb, kind string, reaction ReactionFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := &clientgotesting.SimpleReactor{Verb: verb, Resource: kind, Reaction: reaction}
	r.reactors = append([]Reactor{first}, r.reactors...)
}

// react offers an action to the reactors and returns what the last one that handled it answered, or the first error.
func (r *recorder) react(action Action) (answer runtime.Object, err error) {
	r.mu.Lock()
	reactors := r.reactors[:len(r.reactors):len(r.reactors)]
	r.mu.Unlock()
	for _, reactor := range reactors {
		if !reactor.Handles(action) {
			continue
		}
		handled, obj, err := reactor.React(action)
		if !handled {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !isNil(obj) {
			answer = obj
		}
	}
	return answer, nil
}

// note appends an action on the named object to one of the slices of r.
func note[A Action](r *recorder, actions *[]A, action A, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*actions = append(*actions, action)
	r.journal.add(writeEntry(action, name))
}

// resourceOf returns what stands for the kind of obj in an action.
func (r *recorder) resourceOf(obj runtime.Object) (schema.GroupVersionResource, error) {
	kind, err := kindOf(obj, r.client.Scheme())
	return resourceFor(kind), err
}

// Get implements [client.Client].
func (r *recorder) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return err
	}
	if _, err := r.react(clientgotesting.NewGetAction(resource, key.Namespace, key.Name)); err != nil {
		return err
	}
	return r.client.Get(ctx, key, obj, opts...)
}

// List implements [client.Client].
func (r *recorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	resource, err := r.resourceOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := resource.GroupVersion().WithKind(resource.Resource)
	action := clientgotesting.NewListAction(resource, kind, options.Namespace, *options.AsListOptions())
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.List(ctx, list, opts...)
}

// Watch implements [client.WithWatch], for clients that can watch.
func (r *recorder) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	inner, ok := r.client.(client.WithWatch)
	if !ok {
		return nil, fmt.Errorf("%T cannot watch", r.client)
	}
	resource, err := r.resourceOf(list)
	if err != nil {
		return nil, err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if _, err := r.react(clientgotesting.NewWatchAction(resource, options.Namespace, *options.AsListOptions())); err != nil {
		return nil, err
	}
	return inner.Watch(ctx, list, opts...)
}

// Create implements [client.Client].
func (r *recorder) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	action := clientgotesting.NewCreateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recorded := action
	recorded.Object = obj.DeepCopyObject()
	note(r, &r.CreateActions, CreateAction(recorded), nameOrPattern(obj))
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.Create(ctx, obj, opts...)
}

// Update implements [client.Client].
func (r *recorder) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	action := clientgotesting.NewUpdateActionWithOptions(resource, obj.GetNamespace(), obj, options)
	recorded := action
	recorded.Object = obj.DeepCopyObject()
	note(r, &r.UpdateActions, UpdateAction(recorded), obj.GetName())
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.Update(ctx, obj, opts...)
}

// Patch implements [client.Client].
func (r *recorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := *(&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	action, err := r.patchAction(obj, patch, options)
	if err != nil {
		return err
	}
	note(r, &r.PatchActions, PatchAction(action), obj.GetName())
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.Patch(ctx, obj, patch, opts...)
}

func (r *recorder) patchAction(
	obj client.Object, patch client.Patch, opts metav1.PatchOptions, subresources ...string,
) (clientgotesting.PatchActionImpl, error) {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return clientgotesting.PatchActionImpl{}, err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return clientgotesting.PatchActionImpl{}, err
	}
	return clientgotesting.NewPatchSubresourceActionWithOptions(
		resource, obj.GetNamespace(), obj.GetName(), patch.Type(), data, opts, subresources...), nil
}

// Apply implements [client.Client].
func (r *recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := *(&client.ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	action, err := newApplyAction(obj, "", options)
	if err != nil {
		return err
	}
	note(r, &r.ApplyActions, ApplyAction(action.snapshot()), action.Name)
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.Apply(ctx, obj, opts...)
}

// Delete implements [client.Client].
func (r *recorder) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return err
	}
	options := *(&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	action := clientgotesting.NewDeleteActionWithOptions(resource, obj.GetNamespace(), obj.GetName(), options)
	note(r, &r.DeleteActions, DeleteAction(action), obj.GetName())
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.Delete(ctx, obj, opts...)
}

// DeleteAllOf implements [client.Client].
func (r *recorder) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	resource, err := r.resourceOf(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	action := clientgotesting.NewDeleteCollectionActionWithOptions(
		resource, options.Namespace, *options.AsDeleteOptions(), *options.AsListOptions())
	note(r, &r.DeleteCollectionActions, DeleteCollectionAction(action), "*")
	if _, err := r.react(action); err != nil {
		return err
	}
	return r.client.DeleteAllOf(ctx, obj, opts...)
}

// Scheme implements [client.Client].
func (r *recorder) Scheme() *runtime.Scheme { return r.client.Scheme() }

// RESTMapper implements [client.Client].
func (r *recorder) RESTMapper() meta.RESTMapper { return r.client.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (r *recorder) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return r.client.GroupVersionKindFor(obj)
}

// IsObjectNamespaced implements [client.Client].
func (r *recorder) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return r.client.IsObjectNamespaced(obj)
}
