package execute_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// moving is a type that is served in one version after the other.
type moving struct {
	*bench
	group string
}

func newMoving(b *bench) *moving {
	m := &moving{bench: b, group: strings.ReplaceAll(b.namespace, "_", "-") + ".example.com"}
	m.serve("v1alpha1")
	b.Cleanup(func() {
		if err := b.Delete(context.Background(), m.definition("v1")); client.IgnoreNotFound(err) != nil {
			b.Error(err)
		}
	})
	return m
}

func (m *moving) definition(version string) *unstructured.Unstructured {
	var versions []any
	for _, name := range []string{"v1alpha1", "v1"} {
		versions = append(versions, map[string]any{
			"name": name, "served": name == version, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
				"x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"spec": map[string]any{
			"group": m.group, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"plural": "movers", "singular": "mover", "kind": "Mover", "listKind": "MoverList"},
		},
	}}
	crd.SetName("movers." + m.group)
	return crd
}

// serve has the type served in a version, and in no other.
func (m *moving) serve(version string) {
	m.Helper()
	definition := client.ApplyConfigurationFromUnstructured(m.definition(version))
	if err := m.Apply(m.Context(), definition, client.FieldOwner("somebody"), client.ForceOwnership); err != nil {
		m.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(plane.Config(m.TB))
	if err != nil {
		m.Fatal(err)
	}
	controlplanetest.Eventually(m.TB, "the type is not served in "+version, func(context.Context) error {
		for _, name := range []string{"v1alpha1", "v1"} {
			if _, err := found.ServerResourcesForGroupVersion(m.group + "/" + name); (err == nil) != (name == version) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		groups, resources, _, err := found.GroupsAndMaybeResources()
		if err != nil {
			return err
		}
		for _, group := range groups.Groups {
			gv := schema.GroupVersion{Group: m.group, Version: version}
			if group.Name == m.group && len(group.Versions) == 1 && resources[gv] != nil &&
				len(resources[gv].APIResources) > 0 {
				_, err := m.list(version)
				return err
			}
		}
		return errors.New("it does not show among all groups")
	})
}

func (m *moving) list(version string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: m.group, Version: version, Kind: "MoverList"})
	fresh, err := client.New(plane.Config(m.TB), client.Options{})
	if err != nil {
		return nil, err
	}
	return list, fresh.List(m.Context(), list, client.InNamespace(m.namespace))
}

// reach gives the executor a client as components have one, which knows nothing yet.
func (b *bench) reach() {
	b.Helper()
	config, requests := controlplane.CountRequests(plane.Config(b.TB))
	made, err := (&clusters.Pool{Home: config}).Get(b.Context(), clusters.Identity{})
	if err != nil {
		b.Fatal(err)
	}
	b.executor, b.requests = newExecutor(b.executor), requests
	b.executor.Client = made.Client
}

// An object exists even if its type is not served any more in the version that was recorded.
func TestWhatIsServedInAnotherVersionIsNotGone(t *testing.T) {
	b := newBench(t)
	m := newMoving(b)
	mover := func(name string) *unstructured.Unstructured {
		return b.put(`{apiVersion: `+m.group+`/v1alpha1, kind: Mover, metadata: {name: `+name+`}}`,
			ownedBy(myID, myOwner))
	}
	actions := []plan.Action{plan.ActionDelete, plan.ActionPurge, plan.ActionOrphan}
	objects := map[string]*unstructured.Unstructured{}
	for _, action := range actions {
		for _, client := range []string{"new", "old"} {
			objects[client+string(action)] = mover(client + "-" + string(action))
		}
	}
	kept := mover("kept")
	// The old client knows where the type was.
	b.reach()
	old := b.executor
	if _, err := old.Client.RESTMapper().RESTMapping(keyOf(kept).GroupKind(), "v1alpha1"); err != nil {
		t.Fatal(err)
	}
	if err := old.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), named(kept)); err != nil {
		t.Fatal(err)
	}
	m.serve("v1")

	t.Run("write", func(t *testing.T) {
		b.executor = newExecutor(old)
		b.desire(`{apiVersion: `+m.group+`/v1alpha1, kind: Mover, metadata: {name: kept}}`, "d1")
		b.nothingToMerge()
		for _, action := range []plan.Action{plan.ActionApply, plan.ActionAdopt, plan.ActionReplace,
			plan.ActionRecreate} {
			result := b.run(operation(action, kept))
			var waits *execute.WaitError
			if !errors.As(result.Err, &waits) || !waits.TypeMissing || result.Gone {
				t.Errorf("%s: the error is %v and gone is %t, want a WaitError for a missing type and false", action,
					result.Err, result.Gone)
			}
		}
	})
	for _, which := range []string{"old", "new"} {
		for _, action := range actions {
			o := objects[which+string(action)]
			if which == "new" {
				b.reach()
			} else {
				b.executor = newExecutor(old)
			}
			if result := b.run(operation(action, o)); result.Err != nil || result.Gone {
				t.Errorf("%s by the %s client: the error is %v and gone is %t, want no error and false", action, which,
					result.Err, result.Gone)
			}
		}
	}
	left, err := m.list("v1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range left.Items {
		item := &left.Items[i]
		if item.GetName() != "kept" && item.GetLabels()[ownerLabel] != "" {
			t.Errorf("%s has the owner %q, want none", item.GetName(), item.GetLabels()[ownerLabel])
		}
		names = append(names, item.GetName())
	}
	if got, want := strings.Join(names, " "), "kept new-orphan old-orphan"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if err := b.Delete(t.Context(), m.definition("v1")); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the type does not go", func(context.Context) error {
		_, err := m.list("v1")
		if !meta.IsNoMatchError(err) {
			return fmt.Errorf("it is served: %w", err)
		}
		return nil
	})
	for _, which := range []string{"old", "new"} {
		if b.executor = newExecutor(old); which == "new" {
			b.reach()
		}
		controlplanetest.Eventually(t, "the object is not gone", func(context.Context) error {
			result := newExecutorRun(b, operation(plan.ActionDelete, kept))
			if result.Err != nil || !result.Gone {
				return fmt.Errorf("without the type, by the %s client: gone is %t: %w", which, result.Gone, result.Err)
			}
			return nil
		})
	}
}

// The first object of a type pays for finding out in which version it is served.
func TestTheServedVersionIsAskedForOnce(t *testing.T) {
	mapper := &movedMapper{RESTMapper: meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com",
		Version: "v2"}})}
	things := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	mapper.RESTMapper.(*meta.DefaultRESTMapper).Add(things.WithVersion("v2"), meta.RESTScopeNamespace)
	deletes := map[string]int{}
	b := newBench(t, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			version := o.GetObjectKind().GroupVersionKind().Version
			deletes[version]++
			if version != "v2" {
				return &meta.NoKindMatchError{GroupKind: things, SearchedVersions: []string{version}}
			}
			return nil
		},
	})
	b.executor.Client = withMapper{b.executor.Client, mapper}
	b.executor.Parallel = 1
	var stage plan.Stage
	for i := range 10 {
		stage.Operations = append(stage.Operations, plan.Operation{
			Action: plan.ActionDelete, UID: "1", Pattern: -1, Version: "v1",
			Key: plan.Key{Group: "example.com", Kind: "Thing", Namespace: "default", Name: fmt.Sprint(i)},
		})
	}
	for _, result := range b.executor.Run(t.Context(), stage) {
		if result.Err != nil || result.Gone {
			t.Errorf("the error is %v and gone is %t, want no error and false", result.Err, result.Gone)
		}
	}
	if mapper.asked != 1 || deletes["v1"] != 1 || deletes["v2"] != 10 {
		t.Errorf("the mapper was asked %d times and the deletes are %v, want 1 and 1 of v1, 10 of v2", mapper.asked,
			deletes)
	}
}

// An API that does not answer for its types may have objects of them.
func TestWhatCannotBeAskedForIsNotGone(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	b := newBench(t)
	group := b.namespace + ".down.example.com"
	service := b.object(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.` + group + `},
		spec: {group: ` + group + `, version: v1, groupPriorityMinimum: 1000, versionPriority: 10,
		insecureSkipTLSVerify: true,
		service: {namespace: ` + b.namespace + `, name: nobody}}}`)
	if err := b.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Delete(context.Background(), service); err != nil {
			t.Error(err)
		}
	})
	found, err := discovery.NewDiscoveryClientForConfig(plane.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the type is not served", func(context.Context) error {
		groups, err := found.ServerGroups()
		if err != nil {
			return err
		}
		for _, known := range groups.Groups {
			if known.Name == group {
				return nil
			}
		}
		return errors.New("the group does not show")
	})
	thing := b.object(`{apiVersion: ` + group + `/v1, kind: Thing, metadata: {name: x, uid: "1"}}`)
	for _, action := range []plan.Action{plan.ActionDelete, plan.ActionPurge, plan.ActionOrphan} {
		b.reach()
		for range 2 {
			if result := b.run(operation(action, thing)); result.Err == nil || result.Gone {
				t.Errorf("%s: the error is %v and gone is %t, want an error and false", action, result.Err, result.Gone)
			}
		}
	}
}

// An object that may have been adopted unseen is read before it is deleted.
func TestDeleteReadsWhatMayHaveChangedUnseen(t *testing.T) {
	for _, action := range []plan.Action{plan.ActionDelete, plan.ActionPurge} {
		b := newBench(t)
		o := b.desire(configMap, "d1")
		o.SetUID(b.create(o).GetUID())
		delete(b.executor.Objects, keyOf(o))
		b.patch(t.Context(), o, "another",
			`{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
		b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
		wantOwner(t, b.run(operation(action, o)), plan.Foreign)
		b.live(o)
		b.patch(t.Context(), o, "another",
			`{"metadata":{"labels":{"`+ownerLabel+`":"`+myID+`"},"annotations":{"`+ownerNote+`":"`+myOwner+`"}}}`)
		b.do(operation(action, o), 2)
		b.absent(o)
	}
}

// An object that is adopted between the read and the delete stays.
func TestDeleteAfterAReadRace(t *testing.T) {
	var b *bench
	disturbed := false
	b = newBench(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if !disturbed {
				disturbed = true
				b.patch(ctx, o, "another",
					`{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},`+
						`"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
	wantOwner(t, b.run(operation(plan.ActionDelete, o)), plan.Foreign)
	b.live(o)
}

// newExecutor returns an executor that has executed nothing yet.
func newExecutor(of *execute.Executor) *execute.Executor {
	return &execute.Executor{Client: of.Client, Mark: of.Mark, Reclaim: of.Reclaim, Objects: of.Objects,
		Records: of.Records}
}

func newExecutorRun(b *bench, op plan.Operation) execute.Result {
	b.executor = newExecutor(b.executor)
	return b.run(op)
}

// movedMapper counts how often it is asked.
type movedMapper struct {
	meta.RESTMapper
	asked int
}

func (m *movedMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	return m.RESTMapper.RESTMapping(gk, versions...)
}

type withMapper struct {
	client.Client
	mapper meta.RESTMapper
}

func (c withMapper) RESTMapper() meta.RESTMapper { return c.mapper }
