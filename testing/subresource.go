package testing

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
)

const statusSubresource = "status"

// served are the calls to subresources other than the status that the client behind the recorder can answer. The others
// reach the reactors and do nothing more.
var served = map[string]bool{
	"get scale":       true,
	"update scale":    true,
	"apply scale":     true,
	"create eviction": true,
	"create token":    true,
}

// Status implements [client.Client].
func (r *recorder) Status() client.SubResourceWriter {
	return r.SubResource(statusSubresource)
}

// SubResource implements [client.Client].
func (r *recorder) SubResource(name string) client.SubResourceClient {
	return &subresourceRecorder{recorder: r, name: name}
}

// subresourceRecorder records what is written to one subresource.
type subresourceRecorder struct {
	recorder *recorder
	name     string
}

var _ client.SubResourceClient = (*subresourceRecorder)(nil)

func (s *subresourceRecorder) isStatus() bool { return s.name == statusSubresource }

func (s *subresourceRecorder) isServed(verb string) bool {
	return s.recorder.live || s.isStatus() || served[verb+" "+s.name]
}

// Get fills subResource: with what a reactor answers, else with what the server has. The status subresource is the whole
// object.
func (s *subresourceRecorder) Get(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceGetOption,
) error {
	resource, err := s.recorder.resourceOf(obj)
	if err != nil {
		return err
	}
	answer, err := s.recorder.react(clientgotesting.NewGetSubresourceAction(resource, obj.GetNamespace(), s.name, obj.GetName()))
	if err != nil {
		return err
	}
	if answer != nil {
		return duck.Convert(answer, subResource)
	}
	if s.isStatus() && !s.recorder.live {
		return s.recorder.client.Get(ctx, client.ObjectKeyFromObject(obj), subResource)
	}
	return s.recorder.client.SubResource(s.name).Get(ctx, obj, subResource, opts...)
}

// Create implements [client.SubResourceWriter]. There is nothing to create a status with, so that goes to the reactors and
// no further.
func (s *subresourceRecorder) Create(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	resource, err := s.recorder.resourceOf(obj)
	if err != nil {
		return err
	}
	action := clientgotesting.NewCreateSubresourceAction(resource, obj.GetName(), s.name, obj.GetNamespace(), subResource)
	if !s.isStatus() {
		recorded := action
		recorded.Object = subResource.DeepCopyObject()
		note(s.recorder, &s.recorder.SubResourceActions, Action(recorded), obj.GetName())
	}
	if _, err := s.recorder.react(action); err != nil {
		return err
	}
	if s.isStatus() || !s.isServed("create") {
		return nil
	}
	return s.recorder.client.SubResource(s.name).Create(ctx, obj, subResource, opts...)
}

// Update implements [client.SubResourceWriter].
func (s *subresourceRecorder) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	resource, err := s.recorder.resourceOf(obj)
	if err != nil {
		return err
	}
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	action := clientgotesting.NewUpdateSubresourceActionWithOptions(
		resource, s.name, obj.GetNamespace(), body, *options.AsUpdateOptions())
	recorded := action
	recorded.Object = body.DeepCopyObject()
	if s.isStatus() {
		note(s.recorder, &s.recorder.StatusUpdateActions, UpdateAction(recorded), obj.GetName())
	} else {
		note(s.recorder, &s.recorder.SubResourceActions, Action(recorded), obj.GetName())
	}
	if _, err := s.recorder.react(action); err != nil || !s.isServed("update") {
		return err
	}
	return s.recorder.client.SubResource(s.name).Update(ctx, obj, opts...)
}

// Patch implements [client.SubResourceWriter].
func (s *subresourceRecorder) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	action, err := s.recorder.patchAction(obj, client.RawPatch(patch.Type(), data), *options.AsPatchOptions(), s.name)
	if err != nil {
		return err
	}
	if s.isStatus() {
		note(s.recorder, &s.recorder.StatusPatchActions, PatchAction(action), obj.GetName())
	} else {
		note(s.recorder, &s.recorder.SubResourceActions, Action(action), obj.GetName())
	}
	if _, err := s.recorder.react(action); err != nil || !s.isServed("patch") {
		return err
	}
	return s.recorder.client.SubResource(s.name).Patch(ctx, obj, patch, opts...)
}

// Apply implements [client.SubResourceWriter].
func (s *subresourceRecorder) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	action, err := newApplyAction(obj, s.name, patchOptionsOf(options.ApplyOptions))
	if err != nil {
		return err
	}
	if s.isStatus() {
		note(s.recorder, &s.recorder.StatusApplyActions, ApplyAction(action.snapshot()), action.Name)
	} else {
		note(s.recorder, &s.recorder.SubResourceActions, Action(action.snapshot()), action.Name)
	}
	if _, err := s.recorder.react(action); err != nil || !s.isServed("apply") {
		return err
	}
	return s.recorder.client.SubResource(s.name).Apply(ctx, obj, opts...)
}

func patchOptionsOf(options client.ApplyOptions) metav1.PatchOptions {
	return *options.AsPatchOptions()
}
