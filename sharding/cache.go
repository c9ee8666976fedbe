package sharding

import (
	"errors"
	"fmt"
	"maps"

	"github.com/espalier-dev/espalier/internal/ring"
	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// selected are the types of which a cache has the objects of the shard alone.
type selected struct {
	shard *Shard
	// kinds has the names of the roots of main resources, and is empty for others.
	kinds map[schema.GroupVersionKind]string
}

// selectTypes returns the types that the roots share and own.
func selectTypes(s *Shard, options *manager.Options, roots []reconcilers.Describer) (*selected, error) {
	known := options.Scheme
	if known == nil {
		known = scheme.Scheme
	}
	var descriptions []reconcilers.Description
	for _, root := range roots {
		descriptions = append(descriptions, root.Describe())
	}
	found, err := ring.Of(known, descriptions...)
	if err != nil {
		return nil, err
	}
	sel := &selected{shard: s, kinds: found.Filtered()}
	for kind, root := range sel.kinds {
		shard.Filter(s, kind, root != "")
	}
	shard.CompareTrees(s, func(tree any) error { return found.Compare(tree.(reconcilers.Description)) })
	return sel, nil
}

// newCache returns a function that makes a cache by the author's function, which may be nil.
func (sel *selected) newCache(author cache.NewCacheFunc) cache.NewCacheFunc {
	if author == nil {
		author = cache.New
	}
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		if err := sel.complete(&options); err != nil {
			return nil, fmt.Errorf("unable to select the objects of the shard: %w", err)
		}
		return author(config, options)
	}
}

// complete adds the selector of the shard to the options of a cache.
func (sel *selected) complete(options *cache.Options) error {
	byObject := map[client.Object]cache.ByObject{}
	authors := map[schema.GroupVersionKind]client.Object{}
	maps.Copy(byObject, options.ByObject)
	for obj := range byObject {
		kind, err := apiutil.GVKForObject(obj, options.Scheme)
		if err != nil {
			return err
		}
		authors[kind] = obj
	}
	var errs []error
	for kind, root := range sel.kinds {
		obj, ok := authors[kind]
		if !ok {
			obj = objectOf(kind, options.Scheme)
		}
		namespaced, err := apiutil.IsGVKNamespaced(kind, options.Mapper)
		switch {
		case root != "" && err == nil && !namespaced:
			errs = append(errs, fmt.Errorf("%s cannot be sharded: %s is cluster-scoped, and a ring does not assign "+
				"objects without a namespace", root, kind.Kind))
			continue
		case root != "" && err != nil:
			errs = append(errs, fmt.Errorf("%s: unable to tell whether %s is namespaced: %w", root, kind.Kind, err))
			continue
		case err != nil && !meta.IsNoMatchError(err):
			errs = append(errs, fmt.Errorf("unable to tell whether %s is namespaced: %w", kind.Kind, err))
			continue
		case err != nil, !namespaced:
			// It is not served yet, and a cache that selects its objects cannot be made. Or nothing owns its objects.
			shard.Unfilter(sel.shard, kind)
			continue
		}
		byObject[obj] = selectShard(byObject[obj], *options, shard.Selector(sel.shard))
	}
	options.ByObject = byObject
	return errors.Join(errs...)
}

// selectShard returns how a cache sees a type, with the selector in addition to what the author selects.
func selectShard(by cache.ByObject, options cache.Options, selector labels.Selector) cache.ByObject {
	and := func(author, byDefault labels.Selector) labels.Selector {
		if author == nil {
			author = byDefault
		}
		if author == nil {
			return selector
		}
		ours, _ := selector.Requirements()
		return author.Add(ours...)
	}
	namespaces := by.Namespaces
	if namespaces == nil {
		namespaces = options.DefaultNamespaces
	}
	author := by.Label
	by.Label = and(author, options.DefaultLabelSelector)
	by.Namespaces = maps.Clone(namespaces)
	for namespace, config := range by.Namespaces {
		// A selector of a namespace takes the place of others, in this order.
		outer := author
		if outer == nil {
			outer = options.DefaultNamespaces[namespace].LabelSelector
		}
		if outer == nil {
			outer = options.DefaultLabelSelector
		}
		config.LabelSelector = and(config.LabelSelector, outer)
		by.Namespaces[namespace] = config
	}
	return by
}

// objectOf returns an object of a kind.
func objectOf(kind schema.GroupVersionKind, known *runtime.Scheme) client.Object {
	if made, err := known.New(kind); err == nil {
		if obj, ok := made.(client.Object); ok {
			return obj
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
