package oci_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm/oci"
)

func Example() {
	// A registry in the process, with a chart.
	registry := newRegistry()
	defer registry.Close()
	digest := registry.push(chart("hello"))

	// An operator lists public registries: []oci.Registry{{Host: "ghcr.io", …}}.
	reference := func(s *corev1.ConfigMap) oci.Reference { return oci.Reference{URL: s.Data["url"]} }
	source, err := oci.NewSource(reference, registry.options())
	if err != nil {
		panic(err)
	}
	made := &generator.SourceGenerator{Source: source, Parse: parser}

	for _, url := range []string{registry.url(digest), registry.url(digest), "oci://example.com/shop:1"} {
		// A reconciler makes this context, for the resource.
		ctx := generator.NewContext(context.Background()).WithReconcilerName("shops.example.com").
			WithComponentRevision(1).WithComponent(&corev1.ConfigMap{Data: map[string]string{"url": url}})
		objects, err := made.Generate(ctx, "north", "corner", generator.UnstructurableMap{})
		fmt.Println(len(objects), "objects,", len(registry.seen()), "requests, error:", err)
	}
	// Output:
	// 1 objects, 2 requests, error: <nil>
	// 1 objects, 0 requests, error: <nil>
	// 0 objects, 0 requests, error: oci://example.com/shop:1: the operator does not allow the host example.com
}
