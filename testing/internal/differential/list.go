package differential

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// List implements [client.Client].
func (t *tee) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	of := store.Call{Verb: store.List, Kind: t.kindOf(list), Namespace: options.Namespace}
	var items []unstructured.Unstructured
	return t.make(call{
		Call:   of,
		memory: func() error { return t.WithWatch.List(ctx, list, opts...) },
		onServer: func() (err error) {
			items, err = t.page(ctx, of.Kind, list.GetContinue(), options)
			return err
		},
		compare: func() []string { return t.server.compareLists(of, list, items) },
	})
}

// page returns a page of what the server lists; next is the token of memory for the next page. A token of memory says
// nothing to the server, and a page of the server may end earlier, since others have objects there. So the server lists
// everything for the first page.
func (t *tee) page(
	ctx context.Context, kind schema.GroupVersionKind, next string, options *client.ListOptions,
) ([]unstructured.Unstructured, error) {
	s := t.server
	items, known := s.rests[options.Continue]
	if !known {
		whole := s.listOptions(kind, options)
		if whole.Continue == "" {
			whole.Limit = 0
		}
		var err error
		if items, err = s.list(ctx, kind, whole); err != nil {
			return nil, err
		}
		items = slices.DeleteFunc(items, func(u unstructured.Unstructured) bool {
			return t.hides(store.Key{
				Kind: kind.GroupKind(), Namespace: s.text(u.GetNamespace()), Name: s.text(u.GetName()),
			})
		})
	}
	if limit := int(options.Limit); 0 < limit && limit < len(items) {
		if next != "" {
			s.rests[next] = items[limit:]
		}
		items = items[:limit]
	}
	return items, nil
}

// list returns the objects of the row. The options are those that are sent.
func (s *Server) list(
	ctx context.Context, kind schema.GroupVersionKind, options *client.ListOptions,
) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := s.inner.List(ctx, list, options)
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		in := u.GetNamespace()
		if in == "" {
			in = u.GetName()
		}
		return !strings.HasSuffix(in, s.suffix) && !isDefinition(kind.GroupKind())
	}), err
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
	for _, r := range requirements {
		values := r.Values().UnsortedList()
		for i := range values {
			values[i] = target{server: s}.stringToServer([]string{"metadata", "labels", r.Key()}, values[i])
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
	of := s.target(kind, "", "")
	mapped, err := selector.Transform(func(field, value string) (string, string, error) {
		return field, of.stringToServer(strings.Split(field, "."), value), nil
	})
	if err != nil {
		return selector
	}
	return mapped
}
