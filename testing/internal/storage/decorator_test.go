package storage_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// The registry of k8s.io/apiserver works on the storage that the decorator makes.
func TestDecorator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newRegistry(t, storage.New(storage.Options{}))
		ctx := genericapirequest.WithNamespace(t.Context(), "ns")
		w, err := pods.Watch(ctx, &metainternalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()

		created, err := pods.Create(ctx, newPod("a"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pods.Create(ctx, newPod("a"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			t.Errorf("created twice with error %v", err)
		}
		changed := created.DeepCopyObject().(*example.Pod)
		changed.Labels = map[string]string{"a": "b"}
		if err := update(ctx, pods, changed); err != nil {
			t.Error(err)
		}
		if err := update(ctx, pods, changed); !apierrors.IsConflict(err) {
			t.Errorf("updated an old version with error %v", err)
		}
		_, _, err = pods.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
		if _, err := pods.Get(ctx, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got a deleted pod with error %v", err)
		}
		for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			if event := <-w.ResultChan(); event.Type != want {
				t.Errorf("the watch got %v %v, want %s", event.Type, event.Object, want)
			}
		}
	})
}

// The watches of a resource end with it, as those of custom resources do when their definition goes. Others go on.
func TestEndOfAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storage.New(storage.Options{})
		gone, stays := newRegistry(t, s), newRegistry(t, s)
		ctx := genericapirequest.WithNamespace(t.Context(), "ns")
		watches := map[*registry.Store]watch.Interface{}
		for _, pods := range []*registry.Store{gone, stays} {
			w, err := pods.Watch(ctx, &metainternalversion.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			watches[pods] = w
		}
		gone.DestroyFunc()
		if event, open := <-watches[gone].ResultChan(); open {
			t.Errorf("the watch of what ended got %v %v, want its end", event.Type, event.Object)
		}
		if _, err := stays.Create(ctx, newPod("a"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if event := <-watches[stays].ResultChan(); event.Type != watch.Added {
			t.Errorf("the other watch got %v %v, want what was created", event.Type, event.Object)
		}
	})
}

// The time to live that the registry sets on events, for example, begins again with each update.
func TestRegistryTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newRegistry(t, storage.New(storage.Options{}))
		pods.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return 3600, nil }
		ctx := genericapirequest.WithNamespace(t.Context(), "ns")
		created, err := pods.Create(ctx, newPod("a"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		changed := created.DeepCopyObject().(*example.Pod)
		changed.Labels = map[string]string{"a": "b"}
		if err := update(ctx, pods, changed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		if _, err := pods.Get(ctx, "a", &metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, err := pods.Get(ctx, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an hour after the update: error %v, want not found", err)
		}
	})
}

func update(ctx context.Context, pods *registry.Store, pod *example.Pod) error {
	_, _, err := pods.Update(ctx, pod.Name, rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// newRegistry returns a registry of pods on a storage.
func newRegistry(t *testing.T, s *storage.Storage) *registry.Store {
	t.Helper()
	strategy := strategy{podScheme, names.SimpleNameGenerator}
	pods := &registry.Store{
		NewFunc:                   func() runtime.Object { return &example.Pod{} },
		NewListFunc:               func() runtime.Object { return &example.PodList{} },
		DefaultQualifiedResource:  example.Resource("pods"),
		SingularQualifiedResource: example.Resource("pod"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		TableConvertor:            rest.NewDefaultTableConvertor(example.Resource("pods")),
	}
	config := storagebackend.NewDefaultConfig("", podCodec)
	err := pods.CompleteWithOptions(&generic.StoreOptions{RESTOptions: generic.RESTOptions{
		StorageConfig:  config.ForResource(example.Resource("pods")),
		Decorator:      s.Decorator(),
		ResourcePrefix: "pods",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pods.DestroyFunc(); s.Close() })
	return pods
}

// strategy allows everything.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                                 { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool                              { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool                         { return true }
func (strategy) Canonicalize(runtime.Object)                                           {}
func (strategy) PrepareForCreate(context.Context, runtime.Object)                      {}
func (strategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object)               {}
func (strategy) Validate(context.Context, runtime.Object) field.ErrorList              { return nil }
func (strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string             { return nil }
func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string      { return nil }
