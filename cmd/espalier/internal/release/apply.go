package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/definitions"
)

// Desired is what a release is to be.
type Desired struct {
	Namespace, Name string
	// Spec says what is applied. The revision is not used.
	Spec Spec
	// Objects renders the objects.
	Objects func(ctx context.Context, namespace, name string) ([]*unstructured.Unstructured, error)
}

// Prepare reads or makes a release that is to be as desired, without storing it, and renders its objects. It refuses a
// release that is being deleted.
func (c *Cluster) Prepare(ctx context.Context, d Desired) (*Release, []*unstructured.Unstructured, error) {
	r := &Release{}
	err := c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, r)
	switch {
	case apierrs.IsNotFound(err):
		r = New(d.Namespace, d.Name)
		r.Spec.FieldManager = cmp.Or(d.Spec.FieldManager, FieldManager)
	case err != nil:
		return nil, nil, err
	case r.DeletionTimestamp != nil:
		const why = "the component %q is being deleted: delete it again to finish that, then apply it"
		return nil, nil, fmt.Errorf(why, d.Name)
	}
	if wanted := d.Spec.FieldManager; wanted != "" && wanted != r.Spec.FieldManager {
		const why = "the objects of the component %q are written as the field manager %q: it cannot become %q"
		return nil, nil, fmt.Errorf(why, d.Name, r.Spec.FieldManager, wanted)
	}
	if r.Spec.Digest != d.Spec.Digest {
		r.Spec.Revision++
	}
	r.Spec.Digest, r.Spec.Sources = d.Spec.Digest, d.Spec.Sources
	r.complete()
	objects, err := d.Objects(c.generation(ctx, r), d.Namespace, d.Name)
	if err == nil {
		err = c.checkKinds(objects)
	}
	if err != nil {
		return nil, nil, err
	}
	return r, objects, nil
}

// checkKinds returns an error if the cluster serves no kind of an object, and no object defines it.
func (c *Cluster) checkKinds(objects []*unstructured.Unstructured) error {
	defined, known := map[schema.GroupKind]bool{}, map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		if kind, ok := definitions.Defines(object); ok {
			defined[kind.GroupKind()] = true
		}
	}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if known[kind] || defined[kind.GroupKind()] {
			continue
		}
		known[kind] = true
		_, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			const why = "%s %q: the cluster does not serve the kind in %s, and no source defines it"
			return fmt.Errorf(why, kind.Kind, object.GetName(), kind.GroupVersion())
		}
		if err != nil {
			return fmt.Errorf("%s %q: unable to look up the kind: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}

// generation is the context in which the objects of a release are rendered.
func (c *Cluster) generation(ctx context.Context, r *Release) context.Context {
	return generator.NewContext(ctx).WithReconcilerName(Prefix).
		WithLocalClient(c).WithClient(c).WithDiscovery(c.discovery).
		WithComponent(r).WithComponentNamespace(r.Namespace).WithComponentName(r.Name).
		WithComponentDigest(r.Spec.Digest).WithComponentRevision(r.Spec.Revision)
}

// Store stores what a release is to be.
func (c *Cluster) Store(ctx context.Context, r *Release) error {
	if r.ResourceVersion != "" {
		return c.Update(ctx, r)
	}
	r.Finalizers = []string{Finalizer}
	err := c.Create(ctx, r)
	if apierrs.IsNotFound(err) {
		return fmt.Errorf("the namespace %s does not exist: %w", r.Namespace, err)
	}
	return err
}

// Fixed returns a generator of objects.
func Fixed(objects []*unstructured.Unstructured) generator.GeneratorFunc {
	return func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
		copies := make([]client.Object, len(objects))
		for i := range objects {
			copies[i] = objects[i].DeepCopy()
		}
		return copies, nil
	}
}

// NoObjects is the generator of a release that is being deleted.
func NoObjects(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
	return nil, errors.New("the component is being deleted, and has no manifests")
}

// BeginDeletion marks a release as being deleted.
func (c *Cluster) BeginDeletion(ctx context.Context, r *Release) error {
	if r.DeletionTimestamp != nil {
		return nil
	}
	// Without the finalizer, the inventory would be gone before the objects.
	if !slices.Contains(r.Finalizers, Finalizer) {
		before := r.DeepCopyObject().(client.Object)
		r.Finalizers = append(r.Finalizers, Finalizer)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := c.Patch(ctx, r, patch); err != nil {
			return err
		}
	}
	return c.Delete(ctx, r)
}
