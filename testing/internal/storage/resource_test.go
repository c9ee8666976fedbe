package storage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Resources share the revisions, and each sees its own objects. What is stored by one server is there for another.
func TestSharedByResourcesAndServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		another := &fixture{storage: f.storage, Interface: boundWatches{f.storage.For(f.resource("/pods/")), t.Context()}}
		w := another.watch(t, from("0"))
		first := f.create(t, "a", 0)
		f.increase(t.Context(), t)
		second := another.create(t, "b", 0)
		if first.ResourceVersion != "2" || second.ResourceVersion != "4" {
			t.Errorf("resource versions %s and %s, want 2 and 4", first.ResourceVersion, second.ResourceVersion)
		}
		list, err := f.list(t.Context(), "")
		if err != nil || len(list.Items) != 2 || list.ResourceVersion != "4" {
			t.Errorf("listed %v with error %v, want both pods at revision 4", list, err)
		}
		synctest.Wait()
		if got, want := pending(w), []string{"ADDED a", "ADDED b"}; !slices.Equal(got, want) {
			t.Errorf("the watch of the other server got %q, want %q", got, want)
		}
		if current, err := another.GetCurrentResourceVersion(t.Context()); err != nil || current != 4 {
			t.Errorf("the current resource version is %d with error %v, want 4", current, err)
		}
	})
}

// What one reader does to an object, no other one sees, although each entry is decoded once.
func TestReadersShareNothing(t *testing.T) {
	f := newFixture(t, storage.Options{}).untransformed(t)
	f.create(t, "a", 0)
	readers := map[string]func() *example.Pod{
		"Get": func() *example.Pod {
			pod := &example.Pod{}
			if err := f.Get(t.Context(), podKey("a"), apistorage.GetOptions{}, pod); err != nil {
				t.Fatal(err)
			}
			return pod
		},
		"GetList": func() *example.Pod {
			list, err := f.list(t.Context(), "")
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("listed %v with error %v, want one pod", list, err)
			}
			return &list.Items[0]
		},
		"Watch": func() *example.Pod { return (<-f.watch(t, from("0")).ResultChan()).Object.(*example.Pod) },
	}
	for range 3 {
		for name, read := range readers {
			pod := read()
			if len(pod.Labels) > 0 || pod.Name != "a" || pod.ResourceVersion != "2" {
				t.Errorf("%s returns %v with what another reader did to it", name, pod)
			}
			pod.Labels, pod.Name = map[string]string{"read": name}, "changed"
		}
	}
}

// A request that was given up does nothing and says so.
func TestCanceledContext(t *testing.T) {
	f := newFixture(t, storage.Options{})
	f.create(t, "a", 0)
	before := f.storage.Revision()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"Create": func() error { return f.Create(ctx, podKey("b"), newPod("b"), nil, 0) },
		"Get":    func() error { return f.Get(ctx, podKey("a"), apistorage.GetOptions{}, &example.Pod{}) },
		"Delete": func() error {
			return f.Delete(ctx, podKey("a"), &example.Pod{}, nil, apistorage.ValidateAllObjectFunc, nil,
				apistorage.DeleteOptions{})
		},
		"GuaranteedUpdate":     func() error { return increment(ctx, f, "a") },
		"GetList":              func() error { _, err := f.list(ctx, ""); return err },
		"RequestWatchProgress": func() error { return f.RequestWatchProgress(ctx) },
		"Stats":                func() error { _, err := f.Stats(ctx); return err },
		"GetCurrentResourceVersion": func() error {
			_, err := f.GetCurrentResourceVersion(ctx)
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", name, err, context.Canceled)
		}
	}
	if got := f.storage.Revision(); got != before {
		t.Errorf("the revision is %d, was %d", got, before)
	}
}

// A watch that was given up sends nothing of what there is.
func TestCanceledWatch(t *testing.T) {
	f := newFixture(t, storage.Options{})
	f.create(t, "a", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		w, err := f.Watch(ctx, podKey("a"), from("0"))
		if err != nil {
			t.Fatal(err)
		}
		if event, ok := <-w.ResultChan(); ok {
			t.Fatalf("the watch got %s", describe(event))
		}
	}
}

// Revisions that are not there yet cannot be read. A watch of changes waits for them.
func TestFutureRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, storage.Options{})
		f.create(t, "a", 0)
		for rv, tooLarge := range map[string]bool{"1": false, "2": false, "3": true} {
			err := f.Get(t.Context(), podKey("a"), apistorage.GetOptions{ResourceVersion: rv}, &example.Pod{})
			if apistorage.IsTooLargeResourceVersion(err) != tooLarge {
				t.Errorf("get not older than %s: error %v, want too large to be %v", rv, err, tooLarge)
			}
			opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true, ResourceVersion: rv}
			err = f.GetList(t.Context(), "/pods/", opts, &example.PodList{})
			if apistorage.IsTooLargeResourceVersion(err) != tooLarge {
				t.Errorf("list not older than %s: error %v, want too large to be %v", rv, err, tooLarge)
			}
		}
		initial := true
		opts := from("4")
		changes := f.watch(t, opts)
		opts.SendInitialEvents = &initial
		state := f.watch(t, opts)
		for _, name := range []string{"b", "c", "d"} {
			synctest.Wait()
			f.create(t, name, 0)
		}
		synctest.Wait()
		if got, want := pending(changes), []string{"ADDED d"}; !slices.Equal(got, want) {
			t.Errorf("a watch of changes after revision 4 got %q, want %q", got, want)
		}
		if got, want := pending(state), []string{"ERROR Timeout 504", "end"}; !slices.Equal(got, want) {
			t.Errorf("a watch of the state of revision 4 got %q, want %q", got, want)
		}
	})
}

// An update that is given up while it is computed is not made.
func TestCanceledUpdate(t *testing.T) {
	f := newFixture(t, storage.Options{})
	f.create(t, "a", 0)
	ctx, cancel := context.WithCancel(t.Context())
	err := f.GuaranteedUpdate(ctx, podKey("a"), &example.Pod{}, false, nil,
		apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			cancel()
			obj.(*example.Pod).Generation++
			return obj, nil
		}), nil)
	if !errors.Is(err, context.Canceled) || f.storage.Revision() != 2 {
		t.Errorf("error %v at revision %d, want %v at 2", err, f.storage.Revision(), context.Canceled)
	}
}

// Objects without Go type, as those of custom resources, are stored like others.
func TestUnstructured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storage.New(storage.Options{}).For(storage.Resource{
			Prefix: "/example.com/widgets",
			Codec:  unstructured.UnstructuredJSONScheme,
			New:    func() runtime.Object { return newWidget("") },
		})
		opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
		w, err := s.Watch(t.Context(), "/example.com/widgets", opts)
		if err != nil {
			t.Fatal(err)
		}
		key := "/example.com/widgets/ns/a"
		created, updated := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if err := s.Create(t.Context(), key, newWidget("a"), created, 0); err != nil {
			t.Fatal(err)
		}
		update := apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			return obj, unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, "red", "spec", "color")
		})
		if err := s.GuaranteedUpdate(t.Context(), key, updated, false, nil, update, nil); err != nil {
			t.Fatal(err)
		}
		if created.GetResourceVersion() != "2" || updated.GetResourceVersion() != "3" {
			t.Errorf("created %v and updated to %v, want revisions 2 and 3", created, updated)
		}
		items := &unstructured.UnstructuredList{}
		items.SetAPIVersion("example.com/v1")
		if err := s.GetList(t.Context(), "/example.com/widgets", opts, items); err != nil {
			t.Fatal(err)
		}
		color, _, _ := unstructured.NestedString(items.Items[0].Object, "spec", "color")
		if len(items.Items) != 1 || items.Items[0].GetKind() != "Widget" || color != "red" {
			t.Errorf("listed %v, want the updated widget", items.Items)
		}
		out := &unstructured.Unstructured{}
		err = s.Delete(t.Context(), key, out, apistorage.NewUIDPreconditions("1"), apistorage.ValidateAllObjectFunc,
			nil, apistorage.DeleteOptions{})
		if err != nil || out.GetResourceVersion() != "4" {
			t.Errorf("deleted %v with error %v, want revision 4", out, err)
		}
		synctest.Wait()
		for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			if event := <-w.ResultChan(); event.Type != want || event.Object.(metav1.Object).GetName() != "a" {
				t.Errorf("the watch got %v %v, want %s", event.Type, event.Object, want)
			}
		}
	})
}

// Objects are stored in one version and read in that of the reader, whatever the call.
func TestUnstructuredVersions(t *testing.T) {
	stored, read := schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{
		Group: "example.com", Version: "v2",
	}
	widgets := storage.New(storage.Options{}).For(storage.Resource{
		Prefix: "/widgets",
		Codec: versioning.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme, converter{},
			creator{}, typer{}, nil, stored, read, "widgets"),
		New: func() runtime.Object { return newWidget("") },
	})
	opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
	empty := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": read.String(), "kind": "Widget"}}
	}
	check := func(call string, got *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil || got.GetAPIVersion() != read.String() {
			t.Errorf("%s: %v with error %v, want version %s", call, got, err, read)
		}
	}
	out := empty()
	err := widgets.Create(t.Context(), "/widgets/a", newWidget("a"), out, 0)
	check("Create", out, err)
	err = widgets.Get(t.Context(), "/widgets/a", apistorage.GetOptions{}, out)
	check("Get", out, err)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(read.String())
	if err := widgets.GetList(t.Context(), "/widgets", opts, list); err != nil || len(list.Items) != 1 {
		t.Fatalf("GetList: %v with error %v", list.Items, err)
	}
	check("GetList", &list.Items[0], nil)
	updated := empty()
	err = widgets.GuaranteedUpdate(t.Context(), "/widgets/a", updated, false, nil,
		apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			check("tryUpdate", obj.(*unstructured.Unstructured), nil)
			obj.(*unstructured.Unstructured).SetGeneration(1)
			return obj, nil
		}), nil)
	check("GuaranteedUpdate", updated, err)
	w, err := widgets.Watch(t.Context(), "/widgets", opts)
	if err != nil {
		t.Fatal(err)
	}
	check("Watch", (<-w.ResultChan()).Object.(*unstructured.Unstructured), nil)
	out = empty()
	err = widgets.Delete(t.Context(), "/widgets/a", out, nil, apistorage.ValidateAllObjectFunc, nil,
		apistorage.DeleteOptions{})
	check("Delete", out, err)
}

// converter converts by setting the version, creator and typer know unstructured objects alone.
type (
	converter struct{}
	creator   struct{}
	typer     struct{ runtime.ObjectTyper }
)

func (converter) Convert(in, out, _ any) error {
	to := out.(*unstructured.Unstructured)
	version := to.GetAPIVersion()
	in.(*unstructured.Unstructured).DeepCopyInto(to)
	to.SetAPIVersion(version)
	return nil
}

func (converter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	gvk, _ := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	in.GetObjectKind().SetGroupVersionKind(gvk)
	return in, nil
}

func (converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (creator) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &unstructured.Unstructured{}, nil
}

func (typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{obj.GetObjectKind().GroupVersionKind()}, false, nil
}

func newWidget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	if name != "" {
		u.SetNamespace("ns")
		u.SetName(name)
		u.SetUID("1")
	}
	return u
}

func TestEnableResourceSizeEstimation(t *testing.T) {
	f := newFixture(t, storage.Options{})
	if err := f.EnableResourceSizeEstimation(nil); err == nil {
		t.Error("no error without a function that returns the keys")
	}
	keys := func(context.Context) ([]string, error) { return nil, nil }
	if err := f.EnableResourceSizeEstimation(keys); err != nil {
		t.Error(err)
	}
	if err := f.EnableResourceSizeEstimation(keys); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("enabled twice with error %v", err)
	}
}
