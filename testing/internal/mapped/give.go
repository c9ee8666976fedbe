package mapped

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// given is an object to be given.
type given struct {
	target
	// wanted is the object as the row knows it.
	wanted *unstructured.Unstructured
	// made is the object on the API server, once it is made.
	made *unstructured.Unstructured
}

// Give makes objects on the API server, with the UID, resource version, generation and times that they have. Each must
// have a UID of its own and a resource version. Namespaces must be given too. The error names the object.
func (s *Server) Give(ctx context.Context, objs ...client.Object) error {
	all := make([]*given, 0, len(objs))
	byUID := map[types.UID]*given{}
	for _, obj := range objs {
		g, err := s.newGiven(obj)
		if err != nil {
			return err
		}
		if other, ok := byUID[obj.GetUID()]; ok {
			return fmt.Errorf("cannot give %s and %s: both have the UID %q", other.key, g.key, obj.GetUID())
		}
		byUID[obj.GetUID()] = g
		all = append(all, g)
	}
	all = inOrder(all)
	for _, step := range []func(context.Context, *given) error{s.make, s.finish} {
		for _, g := range all {
			if err := step(ctx, g); err != nil {
				return fmt.Errorf("cannot give %s: %w", g.key, s.error(err))
			}
		}
	}
	return nil
}

func (s *Server) newGiven(obj client.Object) (*given, error) {
	t, err := s.targetOf(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot give %T %q: %w", obj, obj.GetName(), err)
	}
	if _, err := s.inner.RESTMapper().RESTMapping(t.kind.GroupKind(), t.kind.Version); err != nil {
		if meta.IsNoMatchError(err) && s.options.Missing != "" {
			return nil, fmt.Errorf("cannot give %s: the server does not serve %s of %s: %s",
				t.key, t.kind.Kind, t.kind.GroupVersion(), s.options.Missing)
		}
		return nil, fmt.Errorf("cannot give %s: %w", t.key, err)
	}
	wanted, err := toUnstructured(obj, t.kind)
	if err != nil {
		return nil, fmt.Errorf("cannot give %s: %w", t.key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.Insert(obj.GetName(), obj.GetNamespace())
	s.kinds.Insert(t.kind)
	return &given{target: t, wanted: wanted}, nil
}

// inOrder returns namespaces and definitions first, and owners before their dependents.
func inOrder(all []*given) []*given {
	slices.SortStableFunc(all, func(a, b *given) int { return cmp.Compare(rank(a.kind), rank(b.kind)) })
	byUID := map[types.UID]*given{}
	for _, g := range all {
		byUID[g.wanted.GetUID()] = g
	}
	var ordered []*given
	visited := map[*given]bool{}
	var visit func(g *given)
	visit = func(g *given) {
		if visited[g] {
			return
		}
		visited[g] = true
		for _, owner := range g.wanted.GetOwnerReferences() {
			if o, ok := byUID[owner.UID]; ok {
				visit(o)
			}
		}
		ordered = append(ordered, g)
	}
	for _, g := range all {
		visit(g)
	}
	return ordered
}

func rank(kind schema.GroupVersionKind) int {
	switch {
	case kind.GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		return 0
	case isDefinition(kind.GroupKind()):
		return 1
	default:
		return 2
	}
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
	if isDefinition(g.kind.GroupKind()) && apierrors.IsAlreadyExists(err) {
		err = s.inner.Get(ctx, client.ObjectKeyFromObject(g.made), g.made)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.pairUIDs(string(g.wanted.GetUID()), string(g.made.GetUID()))
	s.mu.Unlock()
	if isDefinition(g.kind.GroupKind()) {
		return nil // its controllers write it, and other rows share it
	}
	if err := s.giveStatus(ctx, g, status); err != nil {
		return err
	}
	return s.giveManagedFields(ctx, g)
}

// giveStatus writes the status of a kind that has a subresource for it.
func (s *Server) giveStatus(ctx context.Context, g *given, status map[string]any) error {
	if len(status) == 0 {
		return nil
	}
	g.made.Object["status"] = status
	u := g.made.DeepCopy()
	if err := s.inner.Status().Update(ctx, u); err != nil {
		return client.IgnoreNotFound(err)
	}
	g.made = u
	return nil
}

// giveManagedFields writes the managed fields. Without any, the object has none, like one from before managed fields.
// An API server takes managed fields as they are sent, beside a patch that changes nothing else.
func (s *Server) giveManagedFields(ctx context.Context, g *given) error {
	entries := g.wanted.GetManagedFields()
	if len(entries) == 0 {
		entries = []metav1.ManagedFieldsEntry{{}} // resets them
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": entries}})
	if err != nil {
		return err
	}
	patch, err := g.patch(types.MergePatchType, data)
	if err != nil {
		return err
	}
	return s.inner.Patch(ctx, g.made, patch)
}

// finish deletes an object that is given as deleted, and makes the rest of its identity known.
func (s *Server) finish(ctx context.Context, g *given) error {
	if g.wanted.GetDeletionTimestamp() != nil {
		if err := s.inner.Delete(ctx, g.made.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		if err := s.inner.Get(ctx, client.ObjectKeyFromObject(g.made), g.made); err != nil {
			return err
		}
	}
	made := g.made.DeepCopy()
	s.fromServer(made.Object)
	made.SetUID(g.made.GetUID())
	s.give(g.key, g.wanted, made)
	return nil
}
