package mapped

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status implements [client.Client].
func (c *mappedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.Client].
func (c *mappedClient) SubResource(name string) client.SubResourceClient {
	return &subresource{client: c, inner: c.server.inner.SubResource(name)}
}

// subresource maps the calls to a subresource.
type subresource struct {
	client *mappedClient
	inner  client.SubResourceClient
}

// Get implements [client.SubResourceReader].
func (r *subresource) Get(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption,
) error {
	t, u, err := r.bodies(obj, body)
	if err != nil {
		return err
	}
	return r.client.write(t, body, u, func() error { return r.inner.Get(ctx, t.on, u, opts...) })
}

// Create implements [client.SubResourceWriter].
func (r *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	t, u, err := r.bodies(obj, body)
	if err != nil {
		return err
	}
	if body.GetName() == "" {
		body.SetName(obj.GetName()) // That is what the client of controller-runtime sets.
	}
	if err := r.inner.Create(ctx, t.on, u, opts...); err != nil {
		return r.client.server.error(err)
	}
	if u.Object["status"] == metav1.StatusSuccess {
		return nil // A Status is no object. The client has set the kind of the body on it.
	}
	return r.client.server.answer(t, u, body)
}

// bodies returns what a call is about, and the body that goes with it, whose name may be missing. The name, UID and
// version of the body are those of what the call is about, whatever the kind of the body is.
func (r *subresource) bodies(obj, body client.Object) (target, *unstructured.Unstructured, error) {
	t, err := r.client.server.targetOf(obj)
	if err != nil {
		return t, nil, err
	}
	kind, err := r.client.GroupVersionKindFor(body)
	if err != nil {
		return t, nil, err
	}
	u, err := t.body(body, kind)
	return t, u, err
}

// Update implements [client.SubResourceWriter].
func (r *subresource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	if options.FieldManager == "" {
		options.FieldManager = r.client.FieldManager
	}
	if body := options.SubResourceBody; body != nil {
		t, u, err := r.bodies(obj, body)
		if err != nil {
			return err
		}
		options.SubResourceBody = u
		return r.client.write(t, body, u, func() error { return r.inner.Update(ctx, t.on, options) })
	}
	u, t, err := r.client.server.body(obj)
	if err != nil {
		return err
	}
	return r.client.write(t, obj, u, func() error { return r.inner.Update(ctx, u, options) })
}

// Patch implements [client.SubResourceWriter].
func (r *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	if options.FieldManager == "" {
		options.FieldManager = r.client.FieldManager
	}
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	t, mapped, err := r.client.patch(obj, body, patch)
	if err != nil {
		return err
	}
	answer := t.on
	if options.SubResourceBody != nil {
		if t, answer, err = r.bodies(obj, body); err != nil {
			return err
		}
		options.SubResourceBody = answer
	}
	return r.client.write(t, body, answer, func() error { return r.inner.Patch(ctx, t.on, mapped, options) })
}

// Apply implements [client.SubResourceWriter].
func (r *subresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return r.client.apply(obj, func(config runtime.ApplyConfiguration) error {
		return r.inner.Apply(ctx, config, opts...)
	})
}
