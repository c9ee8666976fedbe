package differential

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Status implements [client.Client].
func (t *tee) Status() client.SubResourceWriter { return t.SubResource("status") }

// SubResource implements [client.Client].
func (t *tee) SubResource(name string) client.SubResourceClient {
	return &subresource{
		SubResourceClient: t.WithWatch.SubResource(name), server: t.server.SubResource(name), tee: t, name: name,
	}
}

// subresource makes the calls to a subresource.
type subresource struct {
	client.SubResourceClient
	server client.SubResourceClient
	tee    *tee
	name   string
}

func (r *subresource) call(verb store.Verb, obj client.Object, dryRun []string) store.Call {
	call := r.tee.callOf(verb, obj, dryRun)
	call.Subresource = r.name
	return call
}

// Get implements [client.SubResourceReader].
func (r *subresource) Get(ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption) error {
	other, otherBody := copyOf(obj), copyOf(body)
	return r.tee.make(call{
		Call:     r.call(store.Get, obj, nil),
		memory:   func() error { return r.SubResourceClient.Get(ctx, obj, body, opts...) },
		server:   func() error { return r.server.Get(ctx, other, otherBody, opts...) },
		inMemory: body, onServer: otherBody,
	})
}

// Create implements [client.SubResourceWriter].
func (r *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	other, otherBody := copyOf(obj), copyOf(body)
	options := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	return r.tee.make(call{
		Call:     r.call(store.Create, obj, options.DryRun),
		memory:   func() error { return r.SubResourceClient.Create(ctx, obj, body, opts...) },
		server:   func() error { return r.server.Create(ctx, other, otherBody, opts...) },
		inMemory: body, onServer: otherBody,
	})
}

// Update implements [client.SubResourceWriter].
func (r *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := *(&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	other, answer := copyOf(obj), obj
	otherAnswer := other
	if options.SubResourceBody != nil {
		answer, otherAnswer = options.SubResourceBody, copyOf(options.SubResourceBody)
		options.SubResourceBody = otherAnswer
	}
	return r.tee.make(call{
		Call:     r.call(store.Update, obj, options.DryRun),
		memory:   func() error { return r.SubResourceClient.Update(ctx, obj, opts...) },
		server:   func() error { return r.server.Update(ctx, other, &options) },
		inMemory: answer, onServer: otherAnswer, writes: true,
	})
}

// Patch implements [client.SubResourceWriter].
func (r *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := *(&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	other, answer := copyOf(obj), obj
	otherAnswer := other
	if options.SubResourceBody != nil {
		answer, otherAnswer = options.SubResourceBody, copyOf(options.SubResourceBody)
		options.SubResourceBody = otherAnswer
	}
	data, err := patch.Data(answer)
	if err != nil {
		return err
	}
	patch = client.RawPatch(patch.Type(), data)
	return r.tee.make(call{
		Call:     r.call(store.Patch, obj, options.DryRun),
		memory:   func() error { return r.SubResourceClient.Patch(ctx, obj, patch, opts...) },
		server:   func() error { return r.server.Patch(ctx, other, patch, &options) },
		inMemory: answer, onServer: otherAnswer, writes: true,
	})
}

// Apply implements [client.SubResourceWriter].
func (r *subresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return r.tee.apply(obj, r.name, options.DryRun,
		func(config runtime.ApplyConfiguration) error { return r.SubResourceClient.Apply(ctx, config, opts...) },
		func(config runtime.ApplyConfiguration) error { return r.server.Apply(ctx, config, opts...) },
	)
}
