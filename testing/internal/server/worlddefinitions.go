package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// definitionStorage has the CustomResourceDefinitions of worlds. The controllers of an API server do something some
// milliseconds after a write: they accept the names, delete the objects of a definition that is being deleted, and then
// remove the definition. Here that is done when the write returns.
type definitionStorage struct {
	apistorage.Interface
	resources *customResources
}

// Create implements [apistorage.Interface].
func (s definitionStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.resources.acceptNames(ctx, obj.(*apiextensions.CustomResourceDefinition)); err != nil {
		return err
	}
	return s.Interface.Create(ctx, key, obj, out, ttl)
}

// GuaranteedUpdate implements [apistorage.Interface].
func (s definitionStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object,
) error {
	if err := s.update(ctx, key, destination, ignoreNotFound, preconditions, update, cached); err != nil {
		return err
	}
	if destination.(*apiextensions.CustomResourceDefinition).DeletionTimestamp != nil {
		if err := s.resources.deleteObjects(ctx, strings.TrimPrefix(key, DefinitionsPrefix)); err != nil {
			return err
		}
		return s.resources.removeDefinition(ctx, s, key)
	}
	return s.acceptFreedNames(ctx)
}

// update updates a definition and accepts its names.
func (s definitionStorage) update(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object,
) error {
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(live runtime.Object, known apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
			begun := live.(*apiextensions.CustomResourceDefinition).DeletionTimestamp != nil
			next, ttl, err := update(live, known)
			if err != nil {
				return next, ttl, err
			}
			d := next.(*apiextensions.CustomResourceDefinition)
			if ends := apiextensions.FindCRDCondition(d, apiextensions.Terminating); ends != nil && !begun {
				ends.LastTransitionTime = timeIn(storage.Of(ctx, s.resources.base))
			}
			return d, ttl, s.resources.acceptNames(ctx, d)
		}, cached)
}

// Delete implements [apistorage.Interface].
func (s definitionStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *apistorage.Preconditions,
	validate apistorage.ValidateObjectFunc, cached runtime.Object, options apistorage.DeleteOptions,
) error {
	if err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options); err != nil {
		return err
	}
	return s.acceptFreedNames(ctx)
}

// acceptFreedNames accepts names that no other definition has any more.
func (s definitionStorage) acceptFreedNames(ctx context.Context) error {
	for _, d := range definitionsIn(storage.Of(ctx, s.resources.base)) {
		if !registry.NamesRefused(d.CustomResourceDefinition) {
			continue
		}
		same := apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) { return obj, nil })
		err := s.update(ctx, DefinitionsPrefix+d.Name, &apiextensions.CustomResourceDefinition{}, false, nil, same, nil)
		if err != nil && !apistorage.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// acceptNames sets the status of a definition that is about to be stored.
func (c *customResources) acceptNames(ctx context.Context, d *apiextensions.CustomResourceDefinition) error {
	kept := storage.Of(ctx, c.base)
	var others []*apiextensionsv1.CustomResourceDefinition
	for _, other := range definitionsIn(kept) {
		if other.Name != d.Name {
			others = append(others, other.CustomResourceDefinition)
		}
	}
	next := &apiextensionsv1.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(
		d.DeepCopy(), next, nil,
	); err != nil {
		return fmt.Errorf("accept the names of CustomResourceDefinition %s: %w", d.Name, err)
	}
	registry.AcceptNames(next, others, timeIn(kept))
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinitionStatus_To_apiextensions_CustomResourceDefinitionStatus(
		&next.Status, &d.Status, nil,
	); err != nil {
		return fmt.Errorf("accept the names of CustomResourceDefinition %s: %w", d.Name, err)
	}
	return nil
}

// deleteObjects deletes the objects of a definition. Those with finalizers stay, and are being deleted.
func (c *customResources) deleteObjects(ctx context.Context, name string) error {
	d := definitionIn(storage.Of(ctx, c.base), name)
	if d == nil || d.served == nil {
		return nil // The objects are those of another definition if this one was never established.
	}
	handler, err := c.handlerOf(d)
	if err != nil {
		return err
	}
	objects, err := handler.GetCustomResourceListerCollectionDeleter(d.served)
	if err != nil {
		return fmt.Errorf("delete the objects of CustomResourceDefinition %s: %w", name, err)
	}
	list, err := objects.List(request.WithNamespace(ctx, metav1.NamespaceAll), nil)
	if err != nil {
		return fmt.Errorf("list the objects of CustomResourceDefinition %s: %w", name, err)
	}
	var namespaces []string
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		if object, err := meta.Accessor(obj); err == nil && !slices.Contains(namespaces, object.GetNamespace()) {
			namespaces = append(namespaces, object.GetNamespace())
		}
		return nil
	})
	errs := []error{err}
	for _, namespace := range namespaces {
		_, err := objects.DeleteCollection(request.WithNamespace(ctx, namespace), rest.ValidateAllObjectFunc, nil, nil)
		errs = append(errs, err)
	}
	return utilerrors.NewAggregate(errs)
}

// removeDefinition removes a definition that is being deleted if it has no objects any more.
func (c *customResources) removeDefinition(ctx context.Context, from definitionStorage, key string) error {
	kept := storage.Of(ctx, c.base)
	d := definitionIn(kept, strings.TrimPrefix(key, DefinitionsPrefix))
	if d == nil || d.DeletionTimestamp == nil ||
		!slices.Contains(d.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) ||
		d.served != nil && len(kept.Entries(d.kind.Prefix+"/")) > 0 {
		return nil
	}
	if len(d.Finalizers) > 1 {
		done := apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			next := obj.(*apiextensions.CustomResourceDefinition)
			next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool {
				return f == apiextensions.CustomResourceCleanupFinalizer
			})
			return next, nil
		})
		return from.update(ctx, key, &apiextensions.CustomResourceDefinition{}, false, nil, done, nil)
	}
	err := from.Delete(ctx, key, &apiextensions.CustomResourceDefinition{}, nil, apistorage.ValidateAllObjectFunc, nil,
		apistorage.DeleteOptions{})
	if apistorage.IsNotFound(err) {
		return nil
	}
	return err
}

// objectStorage has the objects of a definition. After the last of them, a definition that is being deleted goes.
type objectStorage struct {
	apistorage.Interface
	resources  *customResources
	definition string
}

// Delete implements [apistorage.Interface].
func (s objectStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *apistorage.Preconditions,
	validate apistorage.ValidateObjectFunc, cached runtime.Object, options apistorage.DeleteOptions,
) error {
	if err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options); err != nil {
		return err
	}
	return s.resources.removeDefinition(ctx, s.resources.definitions, DefinitionsPrefix+s.definition)
}
