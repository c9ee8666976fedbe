package reconcilers_test

import (
	"context"
	"reflect"
	"strconv"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// memoryClient is a client over objects in memory that reads at the cost of controller-runtime's cache: one deep copy for each
// object, none if it is asked not to, and an index by owner. Of writes it knows what benchmarks need.
type memoryClient struct {
	client.Client
	objects map[reflect.Type]map[types.NamespacedName]client.Object
	byOwner map[string][]client.Object
	extract client.IndexerFunc
	writes  int
}

func newMemoryClient() *memoryClient {
	return &memoryClient{objects: map[reflect.Type]map[types.NamespacedName]client.Object{}, byOwner: map[string][]client.Object{}}
}

func (w *memoryClient) put(obj client.Object) {
	w.writes++
	obj = obj.DeepCopyObject().(client.Object)
	obj.SetResourceVersion(strconv.Itoa(w.writes))
	t := reflect.TypeOf(obj)
	if w.objects[t] == nil {
		w.objects[t] = map[types.NamespacedName]client.Object{}
	}
	w.objects[t][client.ObjectKeyFromObject(obj)] = obj
	if w.extract == nil {
		return
	}
	for _, owner := range w.extract(obj) {
		w.byOwner[owner] = append(w.byOwner[owner], obj)
	}
}

func (w *memoryClient) IndexField(_ context.Context, _ client.Object, _ string, extract client.IndexerFunc) error {
	w.extract = extract
	return nil
}

func (w *memoryClient) Scheme() *runtime.Scheme {
	return scheme.Scheme
}

func (w *memoryClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, scheme.Scheme)
}

func (w *memoryClient) IsObjectNamespaced(runtime.Object) (bool, error) {
	return true, nil
}

func (w *memoryClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	var options client.GetOptions
	options.ApplyOptions(opts)
	known, ok := w.objects[reflect.TypeOf(obj)][key]
	if !ok {
		return apierrs.NewNotFound(schema.GroupResource{}, key.Name)
	}
	if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		known = known.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(known).Elem())
	return nil
}

func (w *memoryClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	var found []client.Object
	if options.FieldSelector != nil {
		found = w.byOwner[options.FieldSelector.Requirements()[0].Value]
	} else {
		for _, obj := range w.objects[reflect.PointerTo(reflect.TypeOf(items).Elem().Elem())] {
			found = append(found, obj)
		}
	}
	listed := make([]runtime.Object, 0, len(found))
	for _, obj := range found {
		if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
			obj = obj.DeepCopyObject().(client.Object)
		}
		listed = append(listed, obj)
	}
	return meta.SetList(list, listed)
}

func (w *memoryClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	obj.SetUID(types.UID(obj.GetName()))
	obj.SetCreationTimestamp(metav1.NewTime(time.Unix(1, 0)))
	w.put(obj)
	obj.SetResourceVersion(strconv.Itoa(w.writes))
	return nil
}
