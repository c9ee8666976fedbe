package store

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
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
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceGetOption,
) error {
	w := write{verb: Get, subresource: c.name}
	return c.client.write(ctx, w, obj, subresource,
		func(ctx context.Context, remote client.WithWatch, obj, body client.Object) error {
			return remote.SubResource(c.name).Get(ctx, obj, body, opts...)
		})
}

// Create implements [client.SubResourceWriter].
func (c *subresourceClient) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	all := append([]client.SubResourceCreateOption{c.client.owner()}, opts...)
	options := (&client.SubResourceCreateOptions{}).ApplyOptions(all)
	w := write{verb: Create, subresource: c.name, manager: options.FieldManager, dryRun: options.DryRun}
	return c.client.write(ctx, w, obj, subresource,
		func(ctx context.Context, remote client.WithWatch, obj, body client.Object) error {
			return remote.SubResource(c.name).Create(ctx, obj, body, options)
		})
}

// Update implements [client.SubResourceWriter].
func (c *subresourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	all := append([]client.SubResourceUpdateOption{c.client.owner()}, opts...)
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(all)
	w := write{verb: Update, subresource: c.name, manager: options.FieldManager, dryRun: options.DryRun}
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	return c.client.write(ctx, w, obj, body,
		func(ctx context.Context, remote client.WithWatch, obj, sent client.Object) error {
			made := *options
			if made.SubResourceBody != nil {
				made.SubResourceBody = sent
			}
			return remote.SubResource(c.name).Update(ctx, obj, &made)
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
	made, err := newPatch(patch, body)
	if err != nil {
		return err
	}
	if made.verb() == Patch || c.client.options.FieldManager != "" {
		options.FieldManager = c.client.manager(options.FieldManager)
	}
	w := write{
		verb: made.verb(), subresource: c.name, manager: c.client.manager(options.FieldManager), dryRun: options.DryRun,
		fields: made.hasFields(),
	}
	return c.client.write(ctx, w, obj, body,
		func(ctx context.Context, remote client.WithWatch, obj, sent client.Object) error {
			with := *options
			if with.SubResourceBody != nil {
				with.SubResourceBody = sent
			}
			return remote.SubResource(c.name).Patch(ctx, obj, made, &with)
		})
}

// Apply implements [client.SubResourceWriter].
func (c *subresourceClient) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return c.client.apply(ctx, config, c.name, &options.ApplyOptions,
		func(
			ctx context.Context, remote client.WithWatch, sent runtime.ApplyConfiguration, _ ...client.ApplyOption,
		) error {
			with := *options
			if with.FieldManager == "" {
				with.FieldManager = c.client.options.FieldManager
			}
			return remote.SubResource(c.name).Apply(ctx, sent, &with)
		})
}
