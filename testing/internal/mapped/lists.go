package mapped

import (
	"context"
	"errors"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// List implements [client.Client]. The API server has objects of others too: a page of a list may be short.
func (c *mappedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	u, err := c.emptyList(list)
	if err != nil {
		return err
	}
	kind := itemKind(u)
	options := c.server.listOptions(kind, (&client.ListOptions{}).ApplyOptions(opts))
	if err := c.server.inner.List(ctx, u, options); err != nil {
		return c.server.error(err)
	}
	items := make([]any, 0, len(u.Items))
	for i := range u.Items {
		if !c.sees(kind, &u.Items[i]) {
			continue
		}
		item := &unstructured.Unstructured{}
		if err := c.server.answer(c.server.target(kind, "", ""), &u.Items[i], item); err != nil {
			return err
		}
		items = append(items, item.Object)
	}
	if !saysKinds(list) && !c.Cached && isBuiltIn(kind) {
		for _, item := range items {
			delete(item.(map[string]any), "apiVersion")
			delete(item.(map[string]any), "kind")
		}
	}
	return c.server.fillList(list, u, items)
}

// emptyList returns the unstructured form of a list, without its items.
func (c *mappedClient) emptyList(list client.ObjectList) (*unstructured.UnstructuredList, error) {
	kind, err := c.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// listOf returns an empty list of a kind.
func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return u
}

func itemKind(list *unstructured.UnstructuredList) schema.GroupVersionKind {
	kind := list.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind
}

// fillList makes list a list of the items, which are as the row knows them.
func (s *Server) fillList(list client.ObjectList, u *unstructured.UnstructuredList, items []any) error {
	s.mu.Lock()
	u.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.mu.Unlock()
	u.Object["items"] = items
	if to, ok := list.(*unstructured.UnstructuredList); ok {
		to.Object, to.Items = u.Object, nil
		delete(to.Object, "items")
		for _, item := range items {
			to.Items = append(to.Items, unstructured.Unstructured{Object: item.(map[string]any)})
		}
		return nil
	}
	return fill(list, u.Object)
}

// saysKinds reports whether the items of a list say their kind whatever the API server answers.
func saysKinds(list client.ObjectList) bool {
	switch list.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadataList:
		return true
	default:
		return false
	}
}

// isBuiltIn reports whether an API server lists objects of the kind without saying their kind.
func isBuiltIn(kind schema.GroupVersionKind) bool {
	return clientgoscheme.Scheme.Recognizes(kind) || isDefinition(kind.GroupKind())
}

// sees reports whether an object on the API server is one of the row, and not hidden.
func (c *mappedClient) sees(kind schema.GroupVersionKind, obj *unstructured.Unstructured) bool {
	of := obj.GetNamespace()
	if of == "" {
		of = obj.GetName()
	}
	namespace, name := c.server.text(obj.GetNamespace()), c.server.text(obj.GetName())
	ours := strings.HasSuffix(of, c.server.suffix) || isDefinition(kind.GroupKind())
	return ours && !c.hides(store.Key{Kind: kind.GroupKind(), Namespace: namespace, Name: name})
}

// listOptions returns options of a list as they are sent.
func (s *Server) listOptions(kind schema.GroupVersionKind, options *client.ListOptions) *client.ListOptions {
	mapped := *options
	mapped.Namespace = s.toName(options.Namespace)
	mapped.LabelSelector = s.labelSelector(options.LabelSelector)
	mapped.FieldSelector = s.fieldSelector(kind, options.FieldSelector)
	return &mapped
}

func (s *Server) labelSelector(selector labels.Selector) labels.Selector {
	if selector == nil {
		return nil
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return selector
	}
	mapped := labels.NewSelector()
	c := content{server: s}
	for _, r := range requirements {
		values := r.Values().UnsortedList()
		for i := range values {
			values[i] = c.stringToServer([]string{"metadata", "labels", r.Key()}, values[i])
		}
		requirement, err := labels.NewRequirement(r.Key(), r.Operator(), values)
		if err != nil {
			return selector // a name of the row that is too long with its suffix matches nothing
		}
		mapped = mapped.Add(*requirement)
	}
	return mapped
}

func (s *Server) fieldSelector(kind schema.GroupVersionKind, selector fields.Selector) fields.Selector {
	if selector == nil {
		return nil
	}
	c := content{server: s, suffixed: s.suffixed(kind)}
	mapped, err := selector.Transform(func(field, value string) (string, string, error) {
		return field, c.stringToServer(strings.Split(field, "."), value), nil
	})
	if err != nil {
		return selector
	}
	return mapped
}

// Watch implements [client.WithWatch]. An object that is not of the Go type of the list is an event of type Error.
func (c *mappedClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	u, err := c.emptyList(list)
	if err != nil {
		return nil, err
	}
	kind := itemKind(u)
	options := c.server.listOptions(kind, (&client.ListOptions{}).ApplyOptions(opts))
	w, err := c.server.inner.Watch(ctx, u, options)
	if err != nil {
		return nil, c.server.error(err)
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return event, true
		}
		if !c.sees(kind, obj) {
			return event, false
		}
		item, err := c.item(kind, list, obj)
		if err != nil {
			failed := apierrors.NewInternalError(err).Status()
			return watch.Event{Type: watch.Error, Object: &failed}, true
		}
		event.Object = item
		return event, true
	}), nil
}

// item returns an object of the API server in the form of the items of a list.
func (c *mappedClient) item(
	kind schema.GroupVersionKind, list client.ObjectList, u *unstructured.Unstructured,
) (runtime.Object, error) {
	var obj client.Object = &unstructured.Unstructured{}
	switch list.(type) {
	case runtime.Unstructured:
	case *metav1.PartialObjectMetadataList:
		obj = &metav1.PartialObjectMetadata{}
	default:
		made, err := c.Scheme().New(kind)
		if err != nil {
			return nil, err
		}
		typed, ok := made.(client.Object)
		if !ok {
			return nil, errors.New("an item of the list is no object")
		}
		obj = typed
	}
	err := c.server.answer(c.server.target(kind, "", ""), u, obj)
	return obj, err
}

// notFound is the error for an object that is hidden.
func (c *mappedClient) notFound(t target) error {
	resource := schema.GroupResource{Group: t.kind.Group, Resource: strings.ToLower(t.kind.Kind)}
	if mapping, err := c.RESTMapper().RESTMapping(t.kind.GroupKind(), t.kind.Version); err == nil {
		resource = mapping.Resource.GroupResource()
	}
	return apierrors.NewNotFound(resource, t.key.Name)
}
