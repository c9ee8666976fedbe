package memserver

import (
	"context"
	"encoding/json"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Build builds the fake client of builder over this server, for the scheme given to [New] unless the builder has
// another. It reports whether the server is behind the client. There are two cases in which it is not:
//
//   - A builder that was given another tracker keeps it.
//   - A builder that was given type converters cannot have a tracker. Server-side apply then uses those converters and
//     the fake client's own tracker, at the cost of some milliseconds a write.
//
// If the builder returns managed fields, the server keeps them, see [WithManagedFields].
func (s *Server) Build(builder *fake.ClientBuilder) (c client.WithWatch, behind bool) {
	// The builder has no methods to read these settings. A field that does not exist in another version of
	// controller-runtime counts as not set.
	settings := reflect.ValueOf(builder).Elem()
	isSet := func(name string) bool {
		field := settings.FieldByName(name)
		return field.IsValid() && !field.IsZero()
	}
	if !isSet("scheme") || settings.FieldByName("scheme").Pointer() == reflect.ValueOf(s.public).Pointer() {
		builder = builder.WithScheme(s.private.Scheme)
	}
	switch {
	case isSet("typeConverters"):
		return s.publish(builder.WithObjectTracker(nil).Build()), false
	case isSet("objectTracker"):
		return s.publish(builder.Build()), false
	}
	s.eager = s.eager || isSet("returnManagedFields")
	inner := builder.WithObjectTracker(s).Build()
	return s.publish(interceptor.NewClient(inner, interceptor.Funcs{
		Create:           s.create,
		Update:           s.update,
		Delete:           s.delete,
		Patch:            s.patch,
		Apply:            s.apply,
		SubResourcePatch: s.patchSubresource,
		SubResourceApply: s.applySubresource,
	})), true
}

// publish returns the client with the public scheme in the place of the private one.
func (s *Server) publish(inner client.WithWatch) client.WithWatch {
	if inner.Scheme() != s.private.Scheme {
		return inner
	}
	return &published{WithWatch: inner, scheme: s.public}
}

// published is a client that shows another scheme than it works with.
type published struct {
	client.WithWatch
	scheme *runtime.Scheme
}

// Unwrap gives access to the client behind, as [fake.AddIndex] needs it.
func (p *published) Unwrap() client.WithWatch { return p.WithWatch }

// Scheme implements [client.Client].
func (p *published) Scheme() *runtime.Scheme { return p.scheme }

func (s *Server) create(
	ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption,
) error {
	if err := inner.Create(ctx, obj, opts...); err != nil {
		return err
	}
	return s.answer(obj)
}

func (s *Server) update(
	ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.UpdateOption,
) error {
	if err := inner.Update(ctx, obj, opts...); err != nil {
		return err
	}
	return s.answer(obj)
}

// answer completes the answer to a write with the managed fields after it, where they are kept: the fake client returns
// none, or those from before the write.
func (s *Server) answer(obj client.Object) error {
	if !s.eager {
		return nil
	}
	_, stored, err := s.stored(obj)
	if err != nil {
		// It is gone since, or the write was a dry run.
		return client.IgnoreNotFound(err)
	}
	if stored.GetResourceVersion() == obj.GetResourceVersion() {
		obj.SetManagedFields(stored.GetManagedFields())
	}
	return nil
}

// stored returns a copy of the stored object that has the kind and name of obj.
func (s *Server) stored(obj client.Object) (gvr schema.GroupVersionResource, stored client.Object, err error) {
	kind, err := apiutil.GVKForObject(obj, s.public)
	if err != nil {
		return gvr, nil, err
	}
	gvr, _ = meta.UnsafeGuessKindToResource(kind)
	found, err := s.Get(gvr, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return gvr, nil, err
	}
	stored, err = asObject(found)
	return gvr, stored, err
}

// delete honours a UID precondition, which the fake client drops. It requires the version that it checked, so that the
// object cannot be replaced in between.
func (s *Server) delete(
	ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.DeleteOption,
) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if options.Preconditions == nil || options.Preconditions.UID == nil || isDryRun(options.DryRun) {
		return inner.Delete(ctx, obj, opts...)
	}
	for {
		gvr, stored, err := s.stored(obj)
		if err != nil {
			return err
		}
		if err := checkPreconditions(gvr, stored, options.Preconditions); err != nil {
			return err
		}
		version := stored.GetResourceVersion()
		err = inner.Delete(ctx, obj, append(opts[:len(opts):len(opts)], client.Preconditions{
			UID: options.Preconditions.UID, ResourceVersion: &version,
		})...)
		if options.Preconditions.ResourceVersion != nil || !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (s *Server) apply(
	ctx context.Context, inner client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	return s.applying.during(config, "", config, func() error { return inner.Apply(ctx, config, opts...) })
}

func (s *Server) applySubresource(
	ctx context.Context, inner client.Client, subresource string, config runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption,
) error {
	call := func() error { return inner.SubResource(subresource).Apply(ctx, config, opts...) }
	if subresource != statusSubresource {
		return call()
	}
	sent := any(config)
	if body := (&client.SubResourceApplyOptions{}).ApplyOpts(opts).SubResourceBody; body != nil {
		sent = body
	}
	return s.applying.during(sent, subresource, config, call)
}

// patch treats a patch of the type apply, which is the older way to apply, as an apply.
func (s *Server) patch(
	ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	call := func() error { return inner.Patch(ctx, obj, patch, opts...) }
	if patch.Type() != types.ApplyPatchType {
		if err := call(); err != nil {
			return err
		}
		return s.answer(obj)
	}
	raw, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return s.applying.during(json.RawMessage(raw), "", obj, call)
}

func (s *Server) patchSubresource(
	ctx context.Context, inner client.Client, subresource string, obj client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption,
) error {
	call := func() error { return inner.SubResource(subresource).Patch(ctx, obj, patch, opts...) }
	if patch.Type() != types.ApplyPatchType || subresource != statusSubresource {
		return call()
	}
	body := obj
	if other := (&client.SubResourcePatchOptions{}).ApplyOptions(opts).SubResourceBody; other != nil {
		body = other
	}
	raw, err := patch.Data(body)
	if err != nil {
		return err
	}
	return s.applying.during(json.RawMessage(raw), subresource, body, call)
}
