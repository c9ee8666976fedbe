package store

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// Status implements [client.Client].
func (c *memoryClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.Client].
func (c *memoryClient) SubResource(name string) client.SubResourceClient {
	return &memorySubresource{client: c, name: name}
}

// memorySubresource is a client of one subresource.
type memorySubresource struct {
	client *memoryClient
	name   string
}

// Get implements [client.SubResourceReader]. There are status and scale.
func (c *memorySubresource) Get(
	ctx context.Context, obj, subresource client.Object, _ ...client.SubResourceGetOption,
) error {
	if err := understand(obj, subresource, errGetOfPartial); err != nil {
		return err
	}
	w := memoryWrite{subresource: c.name}
	key := client.ObjectKeyFromObject(obj)
	return c.client.answer(ctx, Get, obj, subresource, w, func(gvk schema.GroupVersionKind) (*record, error) {
		_, isUnstructured := obj.(runtime.Unstructured)
		_, only := subresource.(runtime.Unstructured)
		if _, builtIn := registry.BuiltIn(gvk); builtIn && only && !isUnstructured {
			return nil, fmt.Errorf("the answer is in protobuf, from which no %T can be decoded", subresource)
		}
		return c.client.store.getSubresource(gvk, key, c.name)
	})
}

// Create implements [client.SubResourceWriter]. There are the eviction of a Pod, which respects no disruption budget,
// and the token of a ServiceAccount.
func (c *memorySubresource) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	if err := understand(obj, subresource, errStatusOfPartial); err != nil {
		return err
	}
	w, err := c.client.creates((&client.SubResourceCreateOptions{}).ApplyOptions(opts).AsCreateOptions(), c.name)
	if err != nil {
		return err
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName()) // That is what the client of controller-runtime sets, and no namespace.
	}
	return c.client.answer(ctx, Create, obj, subresource, w, func(gvk schema.GroupVersionKind) (*record, error) {
		return c.client.store.createSubresource(gvk, client.ObjectKeyFromObject(obj), subresource, w)
	})
}

// Update implements [client.SubResourceWriter].
func (c *memorySubresource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errStatusOfPartial
	}
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	w, err := c.client.updates(options.AsUpdateOptions(), c.name)
	if err != nil {
		return err
	}
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
		nameBody(body, obj)
	}
	return c.client.answer(ctx, Update, obj, body, w, func(gvk schema.GroupVersionKind) (*record, error) {
		if c.name == scaleSubresource {
			return c.client.store.updateScale(gvk, body, w)
		}
		return c.client.store.update(gvk, body, w)
	})
}

// Patch implements [client.SubResourceWriter].
func (c *memorySubresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	return c.client.patch(ctx, obj, body, patch, options.AsPatchOptions(), c.name)
}

// Apply implements [client.SubResourceWriter].
func (c *memorySubresource) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return c.client.apply(ctx, config, options.SubResourceBody, c.name, &options.ApplyOptions)
}

// understand refuses what the client of controller-runtime refuses: a subresource of an unstructured object that is not
// unstructured, and one of metadata alone.
func understand(obj, subresource client.Object, ofPartial error) error {
	_, isPartial := obj.(*metav1.PartialObjectMetadata)
	_, isUnstructured := obj.(runtime.Unstructured)
	_, both := subresource.(runtime.Unstructured)
	switch {
	case isPartial:
		return ofPartial
	case isUnstructured && !both:
		return fmt.Errorf("unstructured client did not understand object: %T", subresource)
	}
	return nil
}

// nameBody gives a body the name of the object that it is sent for, if it has none.
func nameBody(body, obj client.Object) {
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
}

// getSubresource returns what a subresource has.
func (s *memory) getSubresource(gvk schema.GroupVersionKind, key client.ObjectKey, name string) (*record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	live, err := s.writable(r, key.Namespace, key.Name, name)
	if err != nil {
		return nil, err
	}
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(r.resource, key.Name)
	case name == scaleSubresource:
		return r.scaleOf(live)
	}
	return live, nil
}

// createSubresource makes a request to a subresource that is an action.
func (s *memory) createSubresource(
	gvk schema.GroupVersionKind, key client.ObjectKey, body client.Object, w memoryWrite,
) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	if err := r.checkName(key.Namespace, key.Name); err != nil {
		return nil, err
	}
	if actions[w.subresource] != r.gvk.GroupKind() {
		if err := r.checkSubresource(w.subresource, key.Name); err != nil {
			return nil, err
		}
		return nil, methodNotAllowed(r, key.Name)
	}
	live := s.state.find(newKey(r.gvk.GroupKind(), key.Namespace, key.Name))
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(r.resource, key.Name)
	case w.subresource == "eviction":
		return s.evict(r, live, body, w)
	}
	return s.issueToken(live, body)
}

// actions are the subresources that can be created and nothing else, by their kinds.
var actions = map[string]schema.GroupKind{"eviction": {Kind: "Pod"}, "token": {Kind: "ServiceAccount"}}

// evict deletes a Pod.
func (s *memory) evict(r *resource, live *record, body client.Object, w memoryWrite) (*record, error) {
	eviction := &policyv1.Eviction{}
	if err := decodeBody(body, eviction); err != nil {
		return nil, err
	}
	options := eviction.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if w.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := s.deleteRecord(r, live, options, w.manager); err != nil {
		return nil, err
	}
	return newRecord(policyv1.SchemeGroupVersion.WithKind("Eviction"), eviction), nil
}

// apiAudience is the audience of an API server by default: its issuer of tokens, see the flags --api-audiences and
// --service-account-issuer of kube-apiserver. The value is that of clusters that kubeadm sets up.
const apiAudience = "https://kubernetes.default.svc.cluster.local"

// issueToken returns a token of a ServiceAccount, which nobody accepts.
func (s *memory) issueToken(live *record, body client.Object) (*record, error) {
	request := &authenticationv1.TokenRequest{}
	if err := decodeBody(body, request); err != nil {
		return nil, err
	}
	seconds := ptr.Deref(request.Spec.ExpirationSeconds, int64(time.Hour/time.Second))
	request.Spec.ExpirationSeconds = &seconds
	if len(request.Spec.Audiences) == 0 {
		request.Spec.Audiences = []string{apiAudience}
	}
	now := s.now()
	request.Namespace, request.Name, request.CreationTimestamp = live.namespace, live.name, now
	request.Status = authenticationv1.TokenRequestStatus{
		Token:               "token-of-" + live.namespace + "-" + live.name,
		ExpirationTimestamp: metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)),
	}
	return newRecord(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), request), nil
}

// decodeBody makes target what was sent.
func decodeBody(body, target client.Object) error {
	content, err := contentOf(body)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, target); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// checkSubresource refuses a subresource that the kind lacks, or that is an action.
func (r *resource) checkSubresource(subresource, name string) error {
	served := false
	switch subresource {
	case "":
		return nil
	case "status":
		served = r.HasStatus()
	case scaleSubresource:
		_, served = r.scalePaths()
	}
	switch {
	case served:
		return nil
	case actions[subresource] == r.gvk.GroupKind():
		return methodNotAllowed(r, name)
	}
	return noSubresource(r, name)
}
