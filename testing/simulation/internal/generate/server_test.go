package generate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// TestServer creates and edits resources on an API server, which accepts all.
func TestServer(t *testing.T) {
	var fixed []*apiextensionsv1.CustomResourceDefinition
	for kind := range definitions {
		fixed = append(fixed, read(t, kind))
	}
	serve(t, fixed, func(t *testing.T, c client.Client) {
		for kind := range definitions {
			g, r := generator(t, kind), source(1)
			for i := range 10 {
				obj, err := g.Resource(r, "default", fmt.Sprintf("one-%d", i))
				if err != nil {
					t.Fatal(err)
				}
				sent := encode(obj)
				if err := c.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
					t.Fatalf("%v\n%s", err, sent)
				}
				for range 5 {
					was, version := encode(obj), obj.GetResourceVersion()
					obj = g.Edit(r, obj)
					sent := encode(obj)
					if err := c.Update(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
						t.Fatalf("%v\n%s\nwas\n%s", err, sent, was)
					}
					if obj.GetResourceVersion() == version {
						t.Errorf("the update changes nothing: %s\nwas\n%s", sent, was)
					}
				}
			}
		}
	})
}

// serve runs a test with a server in a bubble, and lets two virtual minutes pass after it.
func serve(
	t *testing.T, definitions []*apiextensionsv1.CustomResourceDefinition,
	test func(t *testing.T, c client.Client),
) {
	synctest.Test(t, func(t *testing.T) {
		kept := storage.New(storage.Options{})
		defer kept.Close()
		s, err := server.Start(t.Context(), server.Options{
			Storage: kept.Decorator(), Definitions: definitions, FixedDefinitions: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(2 * time.Minute)
		defer s.Stop()
		config := &rest.Config{Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1}
		c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
	})
}
