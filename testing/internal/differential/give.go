package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// given is a given object.
type given struct {
	target
	// wanted is the object as the row knows it.
	wanted *unstructured.Unstructured
	// made is what the API server made of it, mapped to the row once everything is given.
	made *unstructured.Unstructured
}

// Give makes objects on the API server. Each must have a UID of its own and a resource version. Namespaces must be
// given too. An error is noted as a difference, and names the object.
func (s *Server) Give(ctx context.Context, objs ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*given, 0, len(objs))
	for _, obj := range objs {
		g, err := s.newGiven(obj)
		if err != nil {
			s.note(fmt.Errorf("the server does not take what is given: %w", err))
			return
		}
		all = append(all, g)
	}
	all = inOrder(all)
	for _, step := range []func(context.Context, *given) error{s.make, s.finish} {
		for _, g := range all {
			if err := step(ctx, g); err != nil {
				s.note(fmt.Errorf("the server does not take what is given: %s: %w", g.key, err))
				return
			}
		}
	}
}

func (s *Server) newGiven(obj client.Object) (*given, error) {
	kind, err := s.inner.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	g := &given{target: s.target(kind, obj.GetNamespace(), obj.GetName())}
	if _, err := s.inner.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s: install its CustomResourceDefinition: %w", g.key, err)
	}
	if g.wanted, err = toUnstructured(obj, kind); err != nil {
		return nil, fmt.Errorf("%s: %w", g.key, err)
	}
	s.names.Insert(obj.GetName(), obj.GetNamespace())
	s.kinds.Insert(kind)
	return g, nil
}

// inOrder returns namespaces and definitions first, and owners before their dependents.
func inOrder(all []*given) []*given {
	rank := func(g *given) int {
		switch {
		case g.key.Kind == schema.GroupKind{Kind: "Namespace"}:
			return 0
		case isDefinition(g.key.Kind):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(all, func(a, b *given) int { return cmp.Compare(rank(a), rank(b)) })
	byUID := map[types.UID]*given{}
	for _, g := range all {
		byUID[g.wanted.GetUID()] = g
	}
	var ordered []*given
	visited := map[*given]bool{}
	var visit func(g *given)
	visit = func(g *given) {
		if g == nil || visited[g] {
			return
		}
		visited[g] = true
		for _, owner := range g.wanted.GetOwnerReferences() {
			visit(byUID[owner.UID])
		}
		ordered = append(ordered, g)
	}
	for _, g := range all {
		visit(g)
	}
	return ordered
}

// setByServer are the fields of the metadata that an API server sets.
var setByServer = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields",
}

// make creates an object, with its status and its managed fields.
func (s *Server) make(ctx context.Context, g *given) error {
	g.made = g.wanted.DeepCopy()
	for _, name := range setByServer {
		unstructured.RemoveNestedField(g.made.Object, "metadata", name)
	}
	g.toServer(nil, g.made.Object)
	status, _ := g.made.Object["status"].(map[string]any)
	err := s.inner.Create(ctx, g.made)
	if isDefinition(g.key.Kind) && apierrors.IsAlreadyExists(err) {
		err = s.inner.Get(ctx, client.ObjectKeyFromObject(g.made), g.made)
	}
	if err != nil {
		return err
	}
	s.pairUIDs(g.wanted.GetUID(), g.made.GetUID())
	if isDefinition(g.key.Kind) {
		return nil // its controllers write it, and other rows share it
	}
	if len(status) > 0 {
		u := g.made.DeepCopy()
		u.Object["status"] = status
		switch err := s.inner.Status().Update(ctx, u); {
		case err == nil:
			g.made = u
		case !apierrors.IsNotFound(err): // It is if the kind has no subresource for it.
			return err
		}
	}
	return s.giveManagedFields(ctx, g)
}

// giveManagedFields writes the managed fields. Without any, the object has none, like one from before managed fields.
// An API server takes managed fields as they are sent, beside a patch that changes nothing else.
func (s *Server) giveManagedFields(ctx context.Context, g *given) error {
	entries := g.wanted.GetManagedFields()
	if len(entries) == 0 {
		entries = []metav1.ManagedFieldsEntry{{}} // resets them
	}
	return s.patchMetadata(ctx, g.target, g.made, map[string]any{"managedFields": entries})
}

// patchMetadata changes metadata of the object of a target, and fills obj with the answer.
func (s *Server) patchMetadata(ctx context.Context, t target, obj client.Object, metadata map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	patch, err := t.patch(types.MergePatchType, data)
	if err != nil {
		return err
	}
	return s.inner.Patch(ctx, obj, patch)
}

// finish deletes an object that is given as deleted, and makes its identity known.
func (s *Server) finish(ctx context.Context, g *given) error {
	if g.wanted.GetDeletionTimestamp() != nil {
		if err := s.inner.Delete(ctx, g.made.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		if err := s.inner.Get(ctx, client.ObjectKeyFromObject(g.made), g.made); err != nil {
			return err
		}
	}
	uid := string(g.made.GetUID())
	s.pair(g.key, g.wanted, g.made, false)
	s.fromServer(g.made.Object)
	s.given[uid] = g
	return nil
}

// Follow does on the API server what the control plane in memory has done to finalizers, owners and deletion. What is
// gone there already is no difference.
func (s *Server) Follow(changes []store.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, change := range changes {
		if change.Manager != "" || change.Before == nil {
			continue
		}
		t := s.target(change.Before.GetObjectKind().GroupVersionKind(), change.Key.Namespace, change.Key.Name)
		if err := client.IgnoreNotFound(s.follow(context.Background(), t, change)); err != nil {
			s.note(fmt.Errorf("the server does not let %s be collected as garbage: %w", change.Key, err))
		}
	}
}

func (s *Server) follow(ctx context.Context, t target, change store.Change) error {
	before, after := change.Before, change.After
	removed := after == nil
	if removed {
		after = &metav1.PartialObjectMetadata{}
	}
	if before.GetDeletionTimestamp() == nil && (removed || after.GetDeletionTimestamp() != nil) {
		policy := metav1.DeletePropagationBackground
		if slices.Contains(after.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			policy = metav1.DeletePropagationForeground
		}
		return s.inner.Delete(ctx, t.on, client.PropagationPolicy(policy))
	}
	metadata := map[string]any{}
	if !reflect.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) {
		metadata["finalizers"] = after.GetFinalizers()
	}
	if !removed && !reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		metadata["ownerReferences"] = after.GetOwnerReferences()
	}
	if len(metadata) == 0 {
		return nil
	}
	return s.patchMetadata(ctx, t, t.on, metadata)
}

// Close deletes the objects of the row, even if they have finalizers, and its namespaces. Definitions stay.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	var errs []error
	for _, kind := range append(s.kinds.Delete(namespace).UnsortedList(), namespace) {
		if isDefinition(kind.GroupKind()) {
			continue
		}
		if err := s.deleteAll(ctx, kind); err != nil {
			errs = append(errs, fmt.Errorf("cannot delete what the row has of %s: %w", kind.Kind, err))
		}
	}
	return errors.Join(errs...)
}

// deleteAll deletes the objects of a kind. There are none of a kind that cannot be listed, such as a review.
func (s *Server) deleteAll(ctx context.Context, kind schema.GroupVersionKind) error {
	objs, err := s.list(ctx, kind, &client.ListOptions{})
	if err != nil && !apierrors.IsMethodNotSupported(err) && !meta.IsNoMatchError(err) {
		return err
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for i := range objs {
		obj := &objs[i]
		if err := client.IgnoreNotFound(s.inner.Delete(ctx, obj, client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		if len(obj.GetFinalizers()) == 0 {
			continue
		}
		if err := client.IgnoreNotFound(s.inner.Patch(ctx, obj, free)); err != nil {
			return err
		}
	}
	return nil
}
