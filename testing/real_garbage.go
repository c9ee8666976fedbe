package testing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/mapped"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// garbage is that of a row on a real server. On a server without controllers nobody else collects it, and elsewhere it
// is not known when somebody does.
type garbage struct {
	server *mapped.Server
	errs   []error
}

// collect lets the collector of the server in memory work on a copy of what the row has, and does the same on the
// server.
func (g *garbage) collect(scheme *runtime.Scheme) {
	objs, err := g.server.Objects(context.Background())
	if err != nil {
		g.errs = append(g.errs, err)
		return
	}
	s := store.New(store.Options{Scheme: scheme})
	objs = slices.DeleteFunc(objs, func(obj client.Object) bool { return hasNamespace(s, obj) })
	if err := s.Give(objs...); err != nil {
		g.errs = append(g.errs, fmt.Errorf("cannot collect garbage on the server: %w", err))
		return
	}
	before := s.Revision()
	s.CollectGarbage()
	if err := followCollector(g.server, s.Changes(before)); err != nil {
		g.errs = append(g.errs, err)
	}
}

// hasNamespace reports whether an object is a namespace that a store has from the start.
func hasNamespace(s *store.Store, obj client.Object) bool {
	return obj.GetObjectKind().GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"} &&
		slices.ContainsFunc(s.Objects(), func(ns client.Object) bool { return ns.GetName() == obj.GetName() })
}

// closing returns what ends the use of the server. It returns the errors of the collections too.
func (g *garbage) closing(inner func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(append(g.errs, inner(ctx))...) }
}

// followCollector does on a server what the control plane in memory has done to finalizers, owners and deletion. The
// errors name the objects. What is gone there already is none.
func followCollector(server *mapped.Server, changes []store.Change) error {
	c := server.Client(mapped.ClientOptions{})
	var errs []error
	for _, change := range changes {
		if change.Manager != "" || change.Before == nil {
			continue
		}
		u := &metav1.PartialObjectMetadata{}
		u.SetGroupVersionKind(change.Before.GetObjectKind().GroupVersionKind())
		u.SetNamespace(change.Key.Namespace)
		u.SetName(change.Key.Name)
		if err := client.IgnoreNotFound(followChange(c, u, change)); err != nil {
			errs = append(errs, fmt.Errorf("the server does not let %s %s be collected as garbage: %w",
				change.Key.Kind.Kind, client.ObjectKeyFromObject(u), err))
		}
	}
	return errors.Join(errs...)
}

func followChange(c client.Client, obj client.Object, change store.Change) error {
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
		return c.Delete(context.Background(), obj, client.PropagationPolicy(policy))
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
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(context.Background(), obj, client.RawPatch(types.MergePatchType, data))
}
