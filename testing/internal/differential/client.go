package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Client returns a client that makes each call with memory, and then on the API server. Watches are those of memory.
// The manager is who writes if the call does not say. A cached client does not see what the server hides.
func (s *Server) Client(memory client.WithWatch, manager string, cached bool) client.WithWatch {
	return &tee{WithWatch: memory, server: s, manager: client.FieldOwner(manager), cached: cached}
}

// tee makes the calls of one client.
type tee struct {
	// WithWatch is the client of memory.
	client.WithWatch
	server  *Server
	manager client.FieldOwner
	cached  bool
}

// call is a call that is made on both servers.
type call struct {
	store.Call
	memory, onServer func() error
	// compare returns what is different about the answers; nil if there are none.
	compare func() []string
}

// make makes a call on both servers, and compares. Of a kind that nothing knows only memory is asked.
func (t *tee) make(c call) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	inMemory := c.memory()
	if c.Kind.Empty() {
		return inMemory
	}
	if c.Writes() {
		s.kinds.Insert(c.Kind)
	}
	var differences []string
	if onServer := c.onServer(); inMemory != nil || onServer != nil {
		differences = s.compareErrors(inMemory, onServer)
	} else if c.compare != nil {
		differences = c.compare()
	}
	for _, difference := range differences {
		s.differences = append(s.differences, Difference{c.Call, difference})
	}
	return inMemory
}

// object returns a call about an object that is sent, and is filled with the answer. Send makes it with what the API
// server is sent.
func (t *tee) object(
	of store.Call, obj client.Object, memory func() error, send func(target, *unstructured.Unstructured) error,
) call {
	sent, u := copyOf(obj), &unstructured.Unstructured{}
	return call{
		Call: of, memory: memory,
		onServer: func() (err error) {
			name := sent.GetName()
			if name == "" && sent.GetGenerateName() != "" {
				sent.SetName(obj.GetName()) // the name that memory has generated
			}
			on := t.server.target(of.Kind, sent.GetNamespace(), sent.GetName())
			if u, err = on.body(sent, of.Kind); err != nil {
				return err
			}
			return send(on, u)
		},
		compare: func() []string { return t.server.compareObjects(of, obj, u) },
	}
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

func copyOf(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }

// Get implements [client.Client].
func (t *tee) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	of := store.Call{Verb: store.Get, Kind: t.kindOf(obj), Namespace: key.Namespace, Name: key.Name}
	on := &unstructured.Unstructured{}
	return t.make(call{
		Call:   of,
		memory: func() error { return t.WithWatch.Get(ctx, key, obj, opts...) },
		onServer: func() error {
			if t.hides(keyOf(of)) {
				return t.WithWatch.Get(ctx, key, copyOf(obj), opts...)
			}
			on = t.server.target(of.Kind, key.Namespace, key.Name).on
			return t.server.inner.Get(ctx, client.ObjectKeyFromObject(on), on, opts...)
		},
		compare: func() []string { return t.server.compareObjects(of, obj, on) },
	})
}

func (t *tee) hides(key store.Key) bool { return t.cached && t.server.hidden.Has(key) }

// Create implements [client.Client].
func (t *tee) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	of := t.callOf(store.Create, obj, (&client.CreateOptions{}).ApplyOptions(opts).DryRun)
	return t.make(t.object(of, obj,
		func() error { return t.WithWatch.Create(ctx, obj, opts...) },
		func(_ target, u *unstructured.Unstructured) error {
			return t.server.inner.Create(ctx, u, append([]client.CreateOption{t.manager}, opts...)...)
		}))
}

// Update implements [client.Client].
func (t *tee) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	of := t.callOf(store.Update, obj, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun)
	return t.make(t.object(of, obj,
		func() error { return t.WithWatch.Update(ctx, obj, opts...) },
		func(_ target, u *unstructured.Unstructured) error {
			return t.server.inner.Update(ctx, u, append([]client.UpdateOption{t.manager}, opts...)...)
		}))
}

// Patch implements [client.Client].
func (t *tee) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	patch = client.RawPatch(patch.Type(), data)
	of := t.callOf(store.Patch, obj, (&client.PatchOptions{}).ApplyOptions(opts).DryRun)
	return t.make(t.object(of, obj,
		func() error { return t.WithWatch.Patch(ctx, obj, patch, opts...) },
		func(on target, u *unstructured.Unstructured) error {
			mapped, err := on.patch(patch.Type(), data)
			if err != nil {
				return err
			}
			return t.server.inner.Patch(ctx, u, mapped, append([]client.PatchOption{t.manager}, opts...)...)
		}))
}

// Apply implements [client.Client].
func (t *tee) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return t.apply(obj, "", (&client.ApplyOptions{}).ApplyOptions(opts).DryRun,
		func(config runtime.ApplyConfiguration) error { return t.WithWatch.Apply(ctx, config, opts...) },
		func(config runtime.ApplyConfiguration) error { return t.server.inner.Apply(ctx, config, opts...) },
	)
}

func (t *tee) apply(
	obj runtime.ApplyConfiguration, subresource string, dryRun []string,
	memory, onServer func(runtime.ApplyConfiguration) error,
) error {
	sent, err := applied(obj)
	if err != nil {
		return err
	}
	of := t.callOf(store.Apply, sent, dryRun)
	of.Subresource = subresource
	return t.make(call{
		Call:   of,
		memory: func() error { return memory(obj) },
		onServer: func() error {
			t.server.target(of.Kind, of.Namespace, of.Name).toServer(nil, sent.Object)
			return onServer(client.ApplyConfigurationFromUnstructured(sent))
		},
		compare: func() []string {
			answer, err := applied(obj)
			if err != nil {
				return nil
			}
			return t.server.compareObjects(of, answer, sent)
		},
	})
}

// applied returns an apply configuration as an object.
func applied(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
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
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	of := t.callOf(store.Delete, obj, options.DryRun)
	return t.make(call{
		Call:   of,
		memory: func() error { return t.WithWatch.Delete(ctx, obj, opts...) },
		onServer: func() error {
			on := t.server.target(of.Kind, of.Namespace, of.Name)
			mapped := *options
			mapped.Preconditions = on.preconditions(options.Preconditions)
			return t.server.inner.Delete(ctx, on.on, &mapped)
		},
	})
}

// DeleteAllOf implements [client.Client]. Objects in no namespace are deleted one by one, since others have some too.
func (t *tee) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	s, options := t.server, (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	of := store.Call{
		Verb: store.DeleteCollection, Kind: t.kindOf(obj), Namespace: options.Namespace,
		DryRun: len(options.DryRun) > 0,
	}
	return t.make(call{
		Call:   of,
		memory: func() error { return t.WithWatch.DeleteAllOf(ctx, obj, opts...) },
		onServer: func() error {
			on := s.target(of.Kind, obj.GetNamespace(), obj.GetName())
			mapped := *options
			mapped.ListOptions = *s.listOptions(of.Kind, &options.ListOptions)
			mapped.Preconditions = on.preconditions(options.Preconditions)
			if !on.suffixed {
				return s.inner.DeleteAllOf(ctx, on.on, &mapped)
			}
			objs, err := s.list(ctx, of.Kind, &mapped.ListOptions)
			for i := 0; err == nil && i < len(objs); i++ {
				err = client.IgnoreNotFound(s.inner.Delete(ctx, &objs[i], &mapped.DeleteOptions))
			}
			return err
		},
	})
}
