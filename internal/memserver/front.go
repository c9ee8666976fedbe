package memserver

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Build builds the fake client of builder over this server and returns it together with the tracker that ended up behind
// it. The builder must use the server's scheme.
//
// A builder that has type converters cannot be given a tracker. For such a builder the tracker is that of the fake client
// itself: server-side apply then uses those converters, at the cost of some milliseconds a write, and the returned
// tracker is nil. Use [WithTypeConverters] to have both.
func (s *Server) Build(builder *fake.ClientBuilder) (client.WithWatch, clientgotesting.ObjectTracker) {
	asked := reflect.ValueOf(builder).Elem()
	if list := asked.FieldByName("typeConverters"); list.IsValid() && list.Kind() == reflect.Slice && list.Len() > 0 {
		return builder.WithObjectTracker(nil).Build(), nil
	}
	if wanted := asked.FieldByName("returnManagedFields"); wanted.IsValid() && wanted.Kind() == reflect.Bool && wanted.Bool() {
		s.eager = true
	}
	inner := builder.WithObjectTracker(s).Build()
	return interceptor.NewClient(inner, interceptor.Funcs{
		Delete:           s.delete,
		Patch:            s.patch,
		Apply:            s.apply,
		SubResourcePatch: s.patchSubresource,
		SubResourceApply: s.applySubresource,
	}), s
}

// delete honours a UID precondition, which the fake client drops. It names the version that it looked at, so that the
// object cannot be replaced in between.
func (s *Server) delete(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if options.Preconditions == nil || options.Preconditions.UID == nil || dryRun(options.DryRun) {
		return inner.Delete(ctx, obj, opts...)
	}
	kind, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(kind)
	for {
		stored, err := s.Get(gvr, obj.GetNamespace(), obj.GetName())
		if err != nil {
			return err
		}
		old, err := asObject(stored)
		if err != nil {
			return err
		}
		w := Write{Verb: Delete, Resource: gvr, Old: old, Preconditions: options.Preconditions}
		if err := checkPreconditions(&w); err != nil {
			return err
		}
		version := old.GetResourceVersion()
		err = inner.Delete(ctx, obj, append(opts[:len(opts):len(opts)], client.Preconditions{
			UID: options.Preconditions.UID, ResourceVersion: &version,
		})...)
		if options.Preconditions.ResourceVersion != nil || !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (s *Server) apply(ctx context.Context, inner client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	return s.applying.during(raw, "", func() error {
		return answerDryRun(config, inner.Apply(ctx, config, opts...))
	})
}

func (s *Server) applySubresource(
	ctx context.Context, inner client.Client, subresource string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	if subresource != statusSubresource {
		return inner.SubResource(subresource).Apply(ctx, config, opts...)
	}
	sent := any(config)
	if body := (&client.SubResourceApplyOptions{}).ApplyOpts(opts).SubResourceBody; body != nil {
		sent = body
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	return s.applying.during(raw, subresource, func() error {
		return answerDryRun(config, inner.SubResource(subresource).Apply(ctx, config, opts...))
	})
}

// patch lets the old way to apply, as a patch, keep what was sent too.
func (s *Server) patch(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if patch.Type() != types.ApplyPatchType {
		return inner.Patch(ctx, obj, patch, opts...)
	}
	raw, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return s.applying.during(raw, "", func() error {
		return answerDryRun(obj, inner.Patch(ctx, obj, patch, opts...))
	})
}

func (s *Server) patchSubresource(
	ctx context.Context, inner client.Client, subresource string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	if patch.Type() != types.ApplyPatchType || subresource != statusSubresource {
		return inner.SubResource(subresource).Patch(ctx, obj, patch, opts...)
	}
	body := obj
	if other := (&client.SubResourcePatchOptions{}).ApplyOptions(opts).SubResourceBody; other != nil {
		body = other
	}
	raw, err := patch.Data(body)
	if err != nil {
		return err
	}
	return s.applying.during(raw, subresource, func() error {
		return answerDryRun(body, inner.SubResource(subresource).Patch(ctx, obj, patch, opts...))
	})
}
