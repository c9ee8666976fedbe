package differential

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Status implements [client.Client].
func (t *tee) Status() client.SubResourceWriter { return t.SubResource("status") }

// SubResource implements [client.Client].
func (t *tee) SubResource(name string) client.SubResourceClient {
	return &subresource{
		SubResourceClient: t.WithWatch.SubResource(name), inner: t.server.inner.SubResource(name), tee: t, name: name,
	}
}

// subresource makes the calls to a subresource.
type subresource struct {
	client.SubResourceClient
	inner client.SubResourceClient
	tee   *tee
	name  string
}

// call returns a call about an object, with a body that is filled with the answer. Send makes it with the object and
// the body that the API server is sent.
func (r *subresource) call(
	verb store.Verb, obj, body client.Object, dryRun []string,
	memory func() error, send func(on target, obj, body *unstructured.Unstructured) error,
) call {
	of := r.tee.callOf(verb, obj, dryRun)
	of.Subresource = r.name
	kind, same := r.tee.kindOf(body), body == obj
	sentBody, answer := copyOf(body), &unstructured.Unstructured{}
	made := r.tee.object(of, obj, memory, func(on target, u *unstructured.Unstructured) (err error) {
		if answer = u; !same {
			if answer, err = on.body(sentBody, kind); err != nil {
				return err
			}
		}
		return send(on, u, answer)
	})
	made.compare = func() []string {
		if answer.Object["status"] == metav1.StatusSuccess {
			return nil // A Status is no object.
		}
		return r.tee.server.compareObjects(of, body, answer)
	}
	return made
}

// Get implements [client.SubResourceReader].
func (r *subresource) Get(ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption) error {
	return r.tee.make(r.call(store.Get, obj, body, nil,
		func() error { return r.SubResourceClient.Get(ctx, obj, body, opts...) },
		func(on target, _, body *unstructured.Unstructured) error {
			return r.inner.Get(ctx, on.on, body, opts...)
		}))
}

// Create implements [client.SubResourceWriter].
func (r *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	return r.tee.make(r.call(store.Create, obj, body, (&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun,
		func() error { return r.SubResourceClient.Create(ctx, obj, body, opts...) },
		func(on target, _, body *unstructured.Unstructured) error {
			return r.inner.Create(ctx, on.on, body, opts...)
		}))
}

// Update implements [client.SubResourceWriter].
func (r *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := *(&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	options.FieldManager = r.managerOr(options.FieldManager)
	body := bodyOr(options.SubResourceBody, obj)
	return r.tee.make(r.call(store.Update, obj, body, options.DryRun,
		func() error { return r.SubResourceClient.Update(ctx, obj, opts...) },
		func(_ target, u, answer *unstructured.Unstructured) error {
			if options.SubResourceBody != nil {
				options.SubResourceBody = answer
			}
			return r.inner.Update(ctx, u, &options)
		}))
}

// Patch implements [client.SubResourceWriter].
func (r *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := *(&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	options.FieldManager = r.managerOr(options.FieldManager)
	body := bodyOr(options.SubResourceBody, obj)
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	patch = client.RawPatch(patch.Type(), data)
	return r.tee.make(r.call(store.Patch, obj, body, options.DryRun,
		func() error { return r.SubResourceClient.Patch(ctx, obj, patch, opts...) },
		func(on target, u, answer *unstructured.Unstructured) error {
			if options.SubResourceBody != nil {
				options.SubResourceBody = answer
			}
			mapped, err := on.patch(patch.Type(), data)
			if err != nil {
				return err
			}
			return r.inner.Patch(ctx, u, mapped, &options)
		}))
}

func (r *subresource) managerOr(manager string) string {
	if manager == "" {
		return string(r.tee.manager)
	}
	return manager
}

func bodyOr(body, obj client.Object) client.Object {
	if body == nil {
		return obj
	}
	return body
}

// Apply implements [client.SubResourceWriter].
func (r *subresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return r.tee.apply(obj, r.name, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun,
		func(config runtime.ApplyConfiguration) error { return r.SubResourceClient.Apply(ctx, config, opts...) },
		func(config runtime.ApplyConfiguration) error { return r.inner.Apply(ctx, config, opts...) })
}
