package recording

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

const statusSubresource = "status"

// served are the calls to subresources other than the status that a fake client can answer. The others reach the
// reactors and do nothing more.
var served = map[string]bool{
	"get scale":       true,
	"update scale":    true,
	"apply scale":     true,
	"create eviction": true,
	"create token":    true,
}

// Status implements [client.Client].
func (c *Client) Status() client.SubResourceWriter {
	return c.SubResource(statusSubresource)
}

// SubResource implements [client.Client].
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subresource{client: c, inner: c.Client.SubResource(name), name: name}
}

// subresource records what is written to one subresource.
type subresource struct {
	client *Client
	inner  client.SubResourceClient
	name   string
}

var _ client.SubResourceClient = (*subresource)(nil)

func (s *subresource) isStatus() bool { return s.name == statusSubresource }

// do offers a write to the reactors, and makes the call if none of them fails and the client behind can answer it.
func (s *subresource) do(action clientgotesting.Action, call func() error) error {
	if _, err := s.client.react(action); err != nil {
		return err
	}
	if !s.client.options.Live && !s.isStatus() && !served[action.GetVerb()+" "+s.name] {
		return nil
	}
	err := call()
	if s.isStatus() && !s.client.options.Live && apierrors.IsNotFound(err) {
		return s.client.notServed(action, err)
	}
	return err
}

// notServed returns the error of a write to a status that was not found. If the object exists, its type has no status
// subresource, and the error says so.
func (c *Client) notServed(action clientgotesting.Action, err error) error {
	kind := action.GetResource().GroupVersion().WithKind(action.GetResource().Resource)
	key := client.ObjectKey{Namespace: action.GetNamespace(), Name: NameOf(action)}
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(kind)
	if c.Client.Get(context.Background(), key, stored) != nil {
		return err
	}
	what := "an object of its type"
	if made, notKnown := c.Scheme().New(kind); notKnown == nil {
		what = "&" + strings.TrimPrefix(fmt.Sprintf("%T{}", made), "*")
	}
	return fmt.Errorf("%s %s has no status of its own in this test: add %s to the StatusSubResourceTypes: %w",
		kind.Kind, objects.Path(key.Namespace, key.Name), what, err)
}

// recordWrite records an action, which must not change afterwards, among those of the status or of all other
// subresources.
func recordWrite[A clientgotesting.Action](s *subresource, ofStatus *[]A, action A, name string) {
	if s.isStatus() {
		recordAction(s.client, ofStatus, action, name)
	} else {
		recordAction(s.client, &s.client.SubResourceActions, clientgotesting.Action(action), name)
	}
}

// Get fills body with the answer of a reactor, else with what the server has. The status subresource is the whole
// object.
func (s *subresource) Get(ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption) error {
	resource, err := s.client.resourceOf(obj)
	if err != nil {
		return err
	}
	action := clientgotesting.NewGetSubresourceAction(resource, obj.GetNamespace(), s.name, obj.GetName())
	answer, err := s.client.react(action)
	if err != nil {
		return err
	}
	if answer != nil {
		return duck.Convert(answer, body)
	}
	if s.isStatus() && !s.client.options.Live {
		return s.client.Client.Get(ctx, client.ObjectKeyFromObject(obj), body)
	}
	return s.inner.Get(ctx, obj, body, opts...)
}

// Create implements [client.SubResourceWriter]. A status cannot be created: the call goes to the reactors and no
// further.
func (s *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	resource, err := s.client.resourceOf(obj)
	if err != nil {
		return err
	}
	action := clientgotesting.NewCreateSubresourceAction(resource, obj.GetName(), s.name, obj.GetNamespace(), body)
	if s.isStatus() {
		_, err := s.client.react(action)
		return err
	}
	recordAction(s.client, &s.client.SubResourceActions, action.DeepCopy(), obj.GetName())
	return s.do(action, func() error { return s.inner.Create(ctx, obj, body, opts...) })
}

// Update implements [client.SubResourceWriter].
func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	resource, err := s.client.resourceOf(obj)
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
	recorded := action.DeepCopy().(clientgotesting.UpdateAction)
	recordWrite(s, &s.client.StatusUpdateActions, recorded, obj.GetName())
	return s.do(action, func() error { return s.inner.Update(ctx, obj, opts...) })
}

// Patch implements [client.SubResourceWriter].
func (s *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	action, err := s.client.patchAction(obj, body, patch, *options.AsPatchOptions(), s.name)
	if err != nil {
		return err
	}
	recordWrite(s, &s.client.StatusPatchActions, clientgotesting.PatchAction(action), obj.GetName())
	return s.do(action, func() error { return s.inner.Patch(ctx, obj, patch, opts...) })
}

// Apply implements [client.SubResourceWriter].
func (s *subresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	action, err := NewApplyAction(obj, s.name, *options.ApplyOptions.AsPatchOptions())
	if err != nil {
		return err
	}
	recordWrite(s, &s.client.StatusApplyActions, ApplyAction(action.snapshot()), action.Name)
	return s.do(action, func() error { return s.inner.Apply(ctx, obj, opts...) })
}
