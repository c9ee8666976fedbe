package mapped

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// ClientOptions are what a client of a [Server] is.
type ClientOptions struct {
	// FieldManager is who writes if the call does not say; empty leaves it to the client behind.
	FieldManager string
	// Cached says that it reads as from a cache: it does not see what the server hides, and objects that it reads say
	// their kind.
	Cached bool
}

// Client returns a client.
func (s *Server) Client(options ClientOptions) client.WithWatch {
	return &mappedClient{server: s, ClientOptions: options}
}

// mappedClient maps each call and its answer.
type mappedClient struct {
	server *Server
	ClientOptions
}

// hides reports whether an object is not read.
func (c *mappedClient) hides(key store.Key) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.Cached && c.server.hidden.Has(key)
}

// owner is prepended to the options of a call that may say another.
func (c *mappedClient) owner() client.FieldOwner { return client.FieldOwner(c.FieldManager) }

// Scheme implements [client.Client].
func (c *mappedClient) Scheme() *runtime.Scheme { return c.server.inner.Scheme() }

// RESTMapper implements [client.Client].
func (c *mappedClient) RESTMapper() meta.RESTMapper { return c.server.inner.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (c *mappedClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.server.inner.GroupVersionKindFor(obj)
}

// IsObjectNamespaced implements [client.Client].
func (c *mappedClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.server.inner.IsObjectNamespaced(obj)
}

// Get implements [client.Client].
func (c *mappedClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	t := c.server.target(kind, key.Namespace, key.Name)
	if c.hides(t.key) {
		return c.notFound(t)
	}
	if err := c.server.inner.Get(ctx, client.ObjectKeyFromObject(t.on), t.on, opts...); err != nil {
		return c.server.error(err)
	}
	if err := c.server.answer(t, t.on, obj); err != nil {
		return err
	}
	if !c.Cached {
		kind = schema.GroupVersionKind{}
	}
	says(obj, kind)
	return nil
}

// says sets the kind on an object of a Go type.
func says(obj client.Object, kind schema.GroupVersionKind) {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
	default:
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
}

// Create implements [client.Client].
func (c *mappedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.server.generateName(obj)
	u, t, err := c.server.body(obj)
	if err != nil {
		return err
	}
	c.server.writes(t.kind)
	opts = append([]client.CreateOption{c.owner()}, opts...)
	err = c.write(t, obj, u, func() error { return c.server.inner.Create(ctx, u, opts...) })
	if err == nil {
		says(obj, schema.GroupVersionKind{})
	}
	return err
}

// Update implements [client.Client].
func (c *mappedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	u, t, err := c.server.body(obj)
	if err != nil {
		return err
	}
	opts = append([]client.UpdateOption{c.owner()}, opts...)
	return c.write(t, obj, u, func() error { return c.server.inner.Update(ctx, u, opts...) })
}

// write makes a call that answers with u, and fills obj with the answer.
func (c *mappedClient) write(t target, obj client.Object, u *unstructured.Unstructured, call func() error) error {
	if err := call(); err != nil {
		return c.server.error(err)
	}
	return c.server.answer(t, u, obj)
}

// Patch implements [client.Client].
func (c *mappedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	t, mapped, err := c.patch(obj, obj, patch)
	if err != nil {
		return err
	}
	opts = append([]client.PatchOption{c.owner()}, opts...)
	return c.write(t, obj, t.on, func() error { return c.server.inner.Patch(ctx, t.on, mapped, opts...) })
}

// patch returns what a patch is about, and the patch with the body as it is sent.
func (c *mappedClient) patch(obj, body client.Object, patch client.Patch) (target, client.Patch, error) {
	t, err := c.server.targetOf(obj)
	if err != nil {
		return t, nil, err
	}
	data, err := patch.Data(body)
	if err != nil {
		return t, nil, err
	}
	c.server.writes(t.kind)
	mapped, err := t.patch(patch.Type(), data)
	return t, mapped, err
}

// Apply implements [client.Client].
func (c *mappedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.apply(obj, func(config runtime.ApplyConfiguration) error {
		return c.server.inner.Apply(ctx, config, opts...)
	})
}

// apply maps a configuration, makes the call with it, and fills obj with the answer.
func (c *mappedClient) apply(obj runtime.ApplyConfiguration, call func(runtime.ApplyConfiguration) error) error {
	raw, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return fmt.Errorf("the apply configuration is not an object: %w", err)
	}
	t := c.server.target(u.GroupVersionKind(), u.GetNamespace(), u.GetName())
	c.server.writes(t.kind)
	t.toServer(nil, u.Object)
	if err := call(client.ApplyConfigurationFromUnstructured(u)); err != nil {
		return c.server.error(err)
	}
	answer := &unstructured.Unstructured{}
	if err := c.server.answer(t, u, answer); err != nil {
		return err
	}
	raw, err = json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, obj)
}
