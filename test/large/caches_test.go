package large_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkCaches fills a cache with 10,000 objects of one type, and reports the live memory of each: as they are,
// without managed fields, and with metadata alone. stored-B/object is what the object takes in etcd, without its key.
func BenchmarkCaches(b *testing.B) {
	const n = 10_000
	for _, of := range templates(b).templates {
		for _, how := range []string{"whole", "without-managed-fields", "metadata"} {
			b.Run(fmt.Sprintf("%s/%s", of.kind, how), func(b *testing.B) {
				for b.Loop() {
					fill(b, n, of, how)
				}
			})
		}
	}
}

func fill(b *testing.B, n int, of template, how string) {
	all := templates(b)
	server := &apiServer{templates: all.templates, resources: n}
	options := cache.Options{Scheme: resources.NewScheme(), Mapper: all.mapper, HTTPClient: http.DefaultClient}
	if how == "without-managed-fields" {
		options.DefaultTransform = cache.TransformStripManagedFields()
	}
	gvk := schema.FromAPIVersionAndKind(of.apiVersion, of.kind)
	made, err := options.Scheme.New(gvk)
	if err != nil {
		b.Fatal(err)
	}
	obj := made.(client.Object)
	if how == "metadata" {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(gvk)
		obj = metadata
	}
	before := liveHeap()
	ended := startCache(b, server.serve(b), options, obj)
	b.ReportMetric(float64(liveHeap()-before)/float64(n), "live-B/object")
	stored := of.proto.text
	if len(stored) == 0 {
		stored = of.json.text
	}
	b.ReportMetric(float64(len(stored)), "stored-B/object")
	ended()
}

// startCache fills a cache with the objects of a type. The caller ends it.
func startCache(b *testing.B, config *rest.Config, options cache.Options, obj client.Object) (end func()) {
	b.Helper()
	filled, err := cache.New(config, options)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- filled.Start(ctx) }()
	end = func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
	if _, err := filled.GetInformer(ctx, obj); err != nil {
		end()
		b.Fatal(err)
	}
	if !filled.WaitForCacheSync(ctx) {
		end()
		b.Fatal("the cache was not filled")
	}
	return end
}
