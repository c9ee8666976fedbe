package bundles_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compareWithApply compares the live objects with what "kubectl apply --server-side" would make of the manifests: they
// are applied by a dry run under other names. Namespaced objects are applied in the namespace twin.
func compareWithApply(
	ctx context.Context, c client.Client, manifests []*unstructured.Unstructured, twin string,
) error {
	for _, manifest := range manifests {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(manifest.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(manifest), got); err != nil {
			return err
		}
		want := manifest.DeepCopy()
		// What was exported from a cluster is not applied with what the cluster has set.
		want.Object["metadata"] = map[string]any{"name": want.GetName(), "namespace": want.GetNamespace(),
			"labels": stringMap(want.GetLabels()), "annotations": stringMap(want.GetAnnotations())}
		rename(want, twin)
		configuration := client.ApplyConfigurationFromUnstructured(want)
		if err := c.Apply(ctx, configuration, client.DryRunAll, client.FieldOwner("kubectl")); err != nil {
			return fmt.Errorf("unable to apply %s %s: %w", manifest.GetKind(), manifest.GetName(), err)
		}
		if diff := cmp.Diff(normalized(want), normalized(got)); diff != "" {
			return fmt.Errorf("%s %s differs from an apply:\n%s", manifest.GetKind(), manifest.GetName(), diff)
		}
	}
	return nil
}

// rename gives an object another name, so that it does not exist.
func rename(object *unstructured.Unstructured, twin string) {
	name := object.GetName() + "-twin"
	if object.GetKind() == "CustomResourceDefinition" || object.GetKind() == "APIService" {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		name = strings.TrimSuffix(object.GetName(), group) + "twin." + group
		set(object, "twin."+group, "spec", "group")
	}
	object.SetName(name)
	if object.GetNamespace() != "" {
		object.SetNamespace(twin)
	}
}

func set(object *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		panic(err) // a mistake in a test
	}
}

// normalized returns what an object has from its manifest and by default.
func normalized(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	annotations, labels := object.GetAnnotations(), object.GetLabels()
	for _, marks := range []map[string]string{annotations, labels} {
		for key := range marks {
			if strings.HasPrefix(key, prefix+"/") {
				delete(marks, key)
			}
		}
	}
	delete(labels, "kubernetes.io/metadata.name")
	content := object.Object
	content["metadata"] = map[string]any{"labels": stringMap(labels), "annotations": stringMap(annotations)}
	delete(content, "status")
	switch object.GetKind() {
	case "Service":
		unstructured.RemoveNestedField(content, "spec", "clusterIP")
		unstructured.RemoveNestedField(content, "spec", "clusterIPs")
		unstructured.RemoveNestedField(content, "spec", "healthCheckNodePort")
		ports, _, _ := unstructured.NestedSlice(content, "spec", "ports")
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		set(object, ports, "spec", "ports")
	case "ClusterRole":
		if content["aggregationRule"] != nil {
			delete(content, "rules")
		}
	case "Job":
		unstructured.RemoveNestedField(content, "spec", "selector")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata")
	case "CustomResourceDefinition", "APIService":
		unstructured.RemoveNestedField(content, "spec", "group")
	}
	return content
}

func stringMap(values map[string]string) map[string]any {
	converted := map[string]any{}
	for key, value := range values {
		converted[key] = value
	}
	return converted
}
