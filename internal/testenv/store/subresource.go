package store

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status implements [client.Client].
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.Client].
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{client: c, name: name}
}

// subresourceClient is a client of one subresource.
type subresourceClient struct {
	client *Client
	name   string
}

// Get implements [client.SubResourceReader].
func (c *subresourceClient) Get(
	ctx context.Context, obj, subresource client.Object, _ ...client.SubResourceGetOption,
) error {
	return errors.ErrUnsupported
}

// Create implements [client.SubResourceWriter].
func (c *subresourceClient) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	return errors.ErrUnsupported
}

// Update implements [client.SubResourceWriter].
func (c *subresourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errStatusOfPartial
	}
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
		name(body, obj)
	}
	w := write{
		manager:     c.client.manager(options.FieldManager),
		subresource: c.name, dryRun: isDryRun(options.DryRun),
	}
	return c.client.answer(ctx, Update, obj, body, w, func(gvk schema.GroupVersionKind) (*record, error) {
		return c.client.store.update(gvk, body, w)
	})
}

// Patch implements [client.SubResourceWriter].
func (c *subresourceClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	w := write{manager: options.FieldManager, subresource: c.name, dryRun: isDryRun(options.DryRun)}
	return c.client.patch(ctx, obj, body, patch, options.Force, w)
}

// Apply implements [client.SubResourceWriter].
func (c *subresourceClient) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	body := config
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	return c.client.apply(ctx, config, body, c.name, &options.ApplyOptions)
}

// name gives a body the name of the object that it is sent for, if it has none.
func name(body, obj client.Object) {
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
}
