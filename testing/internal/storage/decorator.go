package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Decorator returns the decorator for [generic.RESTOptions] that has resources stored in s. Of the configuration of a
// resource it takes the codec and the transformer; no client of etcd is made. There is no watch cache. What ends a
// resource ends its watches, as an API server does when it does not serve a type any more.
func (s *Storage) Decorator() generic.StorageDecorator { return s.decorator(false) }

func (s *Storage) decorator(byContext bool) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource,
		resourcePrefix string,
		_ func(obj runtime.Object) (string, error),
		newFunc func() runtime.Object,
		_ func() runtime.Object,
		_ storage.AttrFunc,
		_ storage.IndexerFuncs,
		_ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		resource := Resource{
			Prefix:      resourcePrefix,
			Codec:       config.Codec,
			New:         newFunc,
			Transformer: config.Transformer,
		}
		made := s.newStore(resource)
		ended, end := context.WithCancel(context.Background())
		made.ended, made.byContext = ended, byContext
		return made, factory.DestroyFunc(end), nil
	}
}
