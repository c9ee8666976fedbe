package simulation

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// State is all objects of a cluster at a moment. To read it is not a request: it takes no time and cannot fail.
type State struct {
	objects state.State
	options Options
	// others is when somebody wrote who is neither the operator nor the cluster, before the write that is checked.
	others time.Time
}

// Get sets obj to the object of its kind, namespace and name. It reports whether there is one. The kind of a typed
// object has to be in the scheme of the options, in the version in which the API server stores it; otherwise, Get
// panics.
func (s State) Get(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, s.options.Scheme)
	if err != nil {
		panic(err)
	}
	found := s.objects.Get(fault.Key{Kind: gvk.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()})
	if found != nil {
		decodeInto(found, gvk, obj)
	}
	return found != nil
}

// List sets list to the objects of its kind, in the order of their names. Of the options, those of namespaces and
// labels count. As Get, it panics if the kind is not known.
func (s State) List(list client.ObjectList, options ...client.ListOption) {
	gvk, err := apiutil.GVKForObject(list, s.options.Scheme)
	if err != nil {
		panic(err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		panic(err)
	}
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	items := reflect.ValueOf(pointer).Elem()
	items.SetZero()
	for _, found := range s.objects.Of(gvk.GroupKind()) {
		if wanted.Namespace != "" && wanted.Namespace != found.Namespace {
			continue
		}
		item := reflect.New(items.Type().Elem())
		obj, ok := item.Interface().(client.Object)
		if !ok {
			panic(fmt.Sprintf("the items of %T are not objects", list))
		}
		decodeInto(found, gvk, obj)
		if wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			items.Set(reflect.Append(items, item.Elem()))
		}
	}
}

// CreatedBy returns the actor who created an object, by its UID, also one that is gone. It is empty if there never was
// such an object.
func (s State) CreatedBy(obj client.Object) string {
	created := s.objects.Created(obj.GetUID())
	if created.Actor == "" && created.Name != "" {
		return apiServer
	}
	return created.Actor
}
