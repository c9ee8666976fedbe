package server_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/server"
)

// TestWorldDefinitions has worlds with definitions of one name that differ, side by side.
func TestWorldDefinitions(t *testing.T) {
	everywhere(t, 10, func(t *testing.T, i int) {
		size := int64(10 + i%5)
		w := newWorld(t)
		missing := func(err error) bool { return apierrors.IsNotFound(err) }
		w.refused(w.Create(w.ctx, widget("a", 1)), missing)
		definition := widgetsWith(string(rune('0'+size/10)) + string(rune('0'+size%10)))
		w.create(definition)
		if got := w.sizeOf("a"); got != size {
			t.Errorf("the default is %d, want %d", got, size)
		}
		other := w.fork().fork()
		definition.Spec = widgetsWith("99").Spec
		other.must(other.Update(other.ctx, definition))
		if got := other.sizeOf("b"); got != 99 {
			t.Errorf("the default is %d in the fork that changed it", got)
		}
		if got := w.sizeOf("b"); got != size {
			t.Errorf("the default is %d, want %d, after a fork changed it", got, size)
		}
		bad := widgets()
		bad.Name = "bad.example.com"
		w.refused(w.Create(w.ctx, bad), apierrors.IsInvalid)
	})
}

func TestWorldDeletedDefinition(t *testing.T) {
	everywhere(t, 2, func(t *testing.T, _ int) {
		w := newWorld(t)
		definition, kept := widgets(), widget("kept", 1)
		kept.SetFinalizers([]string{"example.com/wait"})
		elsewhere := widget("a", 1)
		elsewhere.SetNamespace("kube-system")
		w.create(definition, widget("a", 1), elsewhere, kept)
		w.must(w.Delete(w.ctx, definition))
		w.get(definition)
		if definition.DeletionTimestamp == nil {
			t.Error("the definition is not being deleted")
		}
		list := widgetList()
		w.must(w.List(w.ctx, list))
		if len(list.Items) != 1 || list.Items[0].GetDeletionTimestamp() == nil {
			t.Errorf("there are %v", list.Items)
		}
		w.refused(w.Create(w.ctx, widget("late", 1)), apierrors.IsForbidden)
		kept = &list.Items[0]
		kept.SetFinalizers(nil)
		w.must(w.Update(w.ctx, kept))
		w.refused(w.Get(w.ctx, client.ObjectKeyFromObject(definition), definition), apierrors.IsNotFound)
		w.refused(w.Get(w.ctx, client.ObjectKeyFromObject(kept), kept), apierrors.IsNotFound)
		w.create(widgets(), widget("a", 1))
	})
}

func TestWorldNamesOfDefinitions(t *testing.T) {
	w := newWorld(t)
	first, second := widgets(), widgets()
	second.Name, second.Spec.Names.Plural = "others.example.com", "others"
	second.Spec.Names.Singular = "other"
	second.Finalizers = []string{"example.com/wait"}
	w.create(first, second)
	accepted := func(d *apiextensionsv1.CustomResourceDefinition) bool {
		w.get(d)
		return !registry.NamesRefused(d) && registry.Established(d)
	}
	if !accepted(first) || accepted(second) {
		t.Errorf("the conditions are %v and %v", first.Status.Conditions, second.Status.Conditions)
	}
	w.must(w.Delete(w.ctx, first))
	if !accepted(second) {
		t.Errorf("once the names are free, the conditions are %v", second.Status.Conditions)
	}
	w.must(w.Delete(w.ctx, second))
	w.get(second)
	if slices.Contains(second.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		t.Errorf("a definition without objects has the finalizers %v", second.Finalizers)
	}
	second.Finalizers = nil
	w.must(w.Update(w.ctx, second))
	w.refused(w.Get(w.ctx, client.ObjectKeyFromObject(second), second), apierrors.IsNotFound)
}

// unstructuredTypes are the kinds of a scheme that has no definitions.
func unstructuredTypes(resource schema.GroupResource) (registry.Type, bool) {
	scheme := runtime.NewScheme()
	kind := map[string]string{"widgets": "Widget", "planets": "Planet"}[resource.Resource]
	if kind == "" || resource.Group == "example.com" && kind == "Planet" {
		return registry.Type{}, false
	}
	gvk := schema.GroupVersionKind{Group: resource.Group, Version: "v1", Kind: kind}
	scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
	if resource.Group == "example.com" {
		gvk.Version = "v2"
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
	}
	return registry.FromGoType(gvk, scheme)
}

// typed returns an object with a field that no definition has.
func typed(group, version, kind, field string) *unstructured.Unstructured {
	u := widget("a", 0)
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	if kind == "Planet" {
		u.SetNamespace("")
	}
	u.Object["spec"] = map[string]any{field: []any{map[string]any{"name": "a"}}}
	u.Object["status"] = map[string]any{"ready": true}
	u.Object["top"] = "level"
	return u
}

func TestWorldTypes(t *testing.T) {
	everywhere(t, 2, func(t *testing.T, _ int) {
		w := newWorld(t)
		w.ctx = server.World{Storage: w.Storage, Types: unstructuredTypes}.In(w.Context())
		for _, group := range []string{"example.com", "nodot", "stable.k8s.io", ""} {
			for _, kind := range []string{"Widget", "Planet"} {
				obj := typed(group, "v1", kind, "field")
				if group == "example.com" && kind == "Planet" {
					w.refused(w.Create(w.ctx, obj), apierrors.IsNotFound)
					continue
				}
				w.create(obj)
				if obj.Object["top"] != "level" || obj.Object["status"] != nil || obj.GetGeneration() != 1 {
					t.Errorf("%s of group %q is created as %v", kind, group, obj.Object)
				}
				obj.Object["status"] = map[string]any{"ready": true}
				w.must(w.Status().Update(w.ctx, obj))
				version := obj.GetResourceVersion()
				w.must(w.Update(w.ctx, obj))
				if obj.GetResourceVersion() != version {
					t.Errorf("an update of %s of group %q without change is a write", kind, group)
				}
				obj.Object["top"] = "other"
				w.must(w.Update(w.ctx, obj))
				applied := typed(group, "v1", kind, "applied")
				delete(applied.Object, "status")
				apply := client.ApplyConfigurationFromUnstructured(applied)
				w.must(w.Apply(w.ctx, apply, client.FieldOwner("one"), client.ForceOwnership))
				w.get(obj)
				if obj.Object["top"] != "level" || obj.Object["status"] == nil || obj.GetGeneration() != 3 {
					t.Errorf("%s of group %q is applied as %v", kind, group, obj.Object)
				}
				list := widgetList()
				list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
				w.must(w.List(w.ctx, list))
				w.must(w.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"top":"level"}`))))
				if len(list.Items) != 1 || list.Items[0].GetAPIVersion() != obj.GetAPIVersion() {
					t.Errorf("the list of %s of group %q has %d objects", kind, group, len(list.Items))
				}
			}
		}
		w.grouplessTypes()
		w.refused(newWorld(t).Create(w.Context(), typed("nodot", "v1", "Widget", "field")), apierrors.IsNotFound)
	})
}

// grouplessTypes looks for the group that the library has instead of the empty one.
func (w world) grouplessTypes() {
	w.Helper()
	err := w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "b"}, typed("", "v1", "Widget", "field"))
	w.refused(err, apierrors.IsNotFound)
	if err.Error() != `widgets "b" not found` {
		w.Errorf("the error is %v", err)
	}
	list := widgetList()
	list.SetAPIVersion("v1")
	watched, err := w.Watch(w.ctx, list)
	w.must(err)
	defer watched.Stop()
	obj := typed("", "v1", "Widget", "field")
	obj.SetName("")
	obj.SetGenerateName("a-")
	w.create(obj)
	<-watched.ResultChan() // the object that there is
	event := (<-watched.ResultChan()).Object
	if !equality.Semantic.DeepEqual(event, obj) || obj.GetName() != "a-001" || obj.GetAPIVersion() != "v1" {
		w.Errorf("created is %v, watched is %v", obj.Object, event)
	}
	if managed := obj.GetManagedFields(); len(managed) != 1 || managed[0].APIVersion != "v1" {
		w.Errorf("the managed fields are %v", managed)
	}
	if stored := string(w.Entry("/widgets/default/a-001").Value); strings.Contains(stored, "invalid") {
		w.Errorf("stored is %s", stored)
	}
}

// TestWorldTypesOfTwoVersions has two Go types of one kind that have no field in common.
func TestWorldTypesOfTwoVersions(t *testing.T) {
	w := newWorld(t)
	w.ctx = server.World{Storage: w.Storage, Types: unstructuredTypes}.In(w.Context())
	w.create(typed("example.com", "v1", "Widget", "onlyOne"))
	two := typed("example.com", "v2", "Widget", "")
	w.get(two)
	_, ok, _ := unstructured.NestedSlice(two.Object, "spec", "onlyOne")
	if !ok || two.GetAPIVersion() != "example.com/v2" {
		t.Errorf("the object is read as %v", two.Object)
	}
	w.must(unstructured.SetNestedField(two.Object, "a", "spec", "onlyTwo"))
	w.must(w.Update(w.ctx, two))
	one := typed("example.com", "v1", "Widget", "")
	w.get(one)
	if got, _, _ := unstructured.NestedString(one.Object, "spec", "onlyTwo"); got != "a" {
		t.Errorf("the object is read as %v", one.Object)
	}
}
