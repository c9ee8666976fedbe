package helm

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// parseDefinitions returns the objects in a file of a folder crds. A list stands for its items.
func parseDefinitions(name, content string) ([]*unstructured.Unstructured, error) {
	inFile, err := parseDocuments(name, content)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, object := range inFile {
		items, err := flatten(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, nameOf(object), err)
		}
		objects = append(objects, items...)
	}
	return objects, nil
}

func flatten(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	items, ok := itemsOf(object)
	if !ok {
		return []*unstructured.Unstructured{object}, nil
	}
	var objects []*unstructured.Unstructured
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: %w", i, errNotMap)
		}
		inner, err := flatten(&unstructured.Unstructured{Object: content})
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, inner...)
	}
	return objects, nil
}

// definitionsOf returns copies of the objects in the folders crds of a chart and those of its sub-charts that are
// enabled. What is there more than once counts once, the first.
func definitionsOf(
	chart *v2.Chart, by map[*common.File][]*unstructured.Unstructured,
) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, crd := range chart.CRDObjects() {
		for _, object := range by[crd.File] {
			key := object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
			if !seen[key] {
				seen[key] = true
				objects = append(objects, object.DeepCopy())
			}
		}
	}
	return objects
}

// installDefinitions makes the component do with the objects what Helm does. What is there already is only read: the
// component waits until it is ready, and nothing of it is ever changed or deleted. The rest is created and stays.
//
// A definition that is missing is recorded in lookups. Once it exists, the chart is rendered again, and the definition
// is only read from then on, also if the component has created it.
func installDefinitions(
	ctx context.Context, objects []*unstructured.Unstructured, lookups *gotemplate.Lookups,
) error {
	if len(objects) == 0 {
		return nil
	}
	target, err := generator.ClientFromContext(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(object.GroupVersionKind())
		err := target.Get(ctx, client.ObjectKeyFromObject(object), found)
		switch {
		case err == nil:
			annotate(object, generator.AnnotationPresence, "read-only")
			continue
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("unable to read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		lookups.Add(gotemplate.Lookup{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: object.GetNamespace(), Name: object.GetName(),
		})
		annotate(object, generator.AnnotationReconcilePolicy, "once")
		annotate(object, generator.AnnotationDeletePolicy, "orphan")
	}
	return nil
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[generator.SharedPrefix+"/"+name] = value
	object.SetAnnotations(annotations)
}
