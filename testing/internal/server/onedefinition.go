package server

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// oneDefinition is an informer that has one definition, whatever name is asked for, and no events.
type oneDefinition struct {
	cache.SharedIndexInformer
	definition *apiextensionsv1.CustomResourceDefinition
}

var (
	_ informers.CustomResourceDefinitionInformer = oneDefinition{}
	_ listers.CustomResourceDefinitionLister     = oneDefinition{}
)

// Informer implements [informers.CustomResourceDefinitionInformer].
func (o oneDefinition) Informer() cache.SharedIndexInformer { return o }

// Lister implements [informers.CustomResourceDefinitionInformer].
func (o oneDefinition) Lister() listers.CustomResourceDefinitionLister { return o }

// AddEventHandler implements [cache.SharedIndexInformer].
func (oneDefinition) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

// List implements [listers.CustomResourceDefinitionLister].
func (o oneDefinition) List(labels.Selector) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return []*apiextensionsv1.CustomResourceDefinition{o.definition}, nil
}

// Get implements [listers.CustomResourceDefinitionLister].
func (o oneDefinition) Get(string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return o.definition, nil
}
