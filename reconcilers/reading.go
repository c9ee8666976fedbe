package reconcilers

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readChildren lists the children that resource controls: by the owner index if the type has one, else by listing the
// resource's namespace.
func readChildren(ctx context.Context, config Config, resource, sample client.Object, list client.ObjectList, opts ...client.ListOption) ([]client.Object, error) {
	opts = append(opts, client.InNamespace(resource.GetNamespace()))
	if !config.owners.has(config.Client, sample) {
		return readControlled(ctx, config, resource, list, opts...)
	}
	found, err := readControlled(ctx, config, resource, list, append(opts, owned(resource))...)
	if err == nil {
		return found, nil
	}
	// The client may read the type past the cache, which alone has the index: by the options of the manager, or because the
	// author replaced the client of the config.
	found, listErr := readControlled(ctx, config, resource, list, opts...)
	if listErr != nil {
		return nil, err
	}
	config.owners.drop(config.Client, sample)
	return found, nil
}

func readControlled(ctx context.Context, config Config, resource client.Object, list client.ObjectList, opts ...client.ListOption) ([]client.Object, error) {
	listed, err := readList(ctx, config.Client, list, opts...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(listed, func(obj client.Object) bool { return !metav1.IsControlledBy(obj, resource) }), nil
}

// readList lists into a new list of the type of list, and returns the objects sorted by namespace and name.
func readList(ctx context.Context, reader client.Reader, list client.ObjectList, opts ...client.ListOption) ([]client.Object, error) {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, meta.LenList(list))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			objects = append(objects, obj)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortObjects(objects)
	return objects, nil
}

func sortObjects(objects []client.Object) {
	slices.SortFunc(objects, func(a, b client.Object) int {
		if order := strings.Compare(a.GetNamespace(), b.GetNamespace()); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}
