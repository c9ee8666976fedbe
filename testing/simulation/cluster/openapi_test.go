package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

var (
	reference = regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]+)"`)
	mediaJSON = "application/json"
	mediaPB   = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// TestOpenAPI reads the document of each version of a group.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	clients, err := discovery.NewDiscoveryClientForConfig(start(t, &cluster.Environment{
		CRDDirectoryPaths: []string{shops},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var paths map[string]openapi.GroupVersion
	for range 100 { // A definition is in the index a moment after it is served.
		if paths, err = clients.OpenAPIV3().Paths(); err != nil || paths["apis/shop.example.com/v1"] != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "apis/shop.example.com/v1"} {
		if paths[want] == nil {
			t.Errorf("there is no %s in %v", want, slices.Sorted(maps.Keys(paths)))
		}
	}
	for path, version := range paths {
		text, err := version.Schema(mediaJSON)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		document := struct {
			Paths      map[string]json.RawMessage
			Components struct{ Schemas map[string]json.RawMessage }
		}{}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, found := range reference.FindAllSubmatch(text, -1) {
			if document.Components.Schemas[string(found[1])] == nil {
				t.Errorf("%s refers to %s, which is not there", path, found[1])
			}
		}
	}
	for path, parts := range map[string][]string{
		"apis/apps/v1": {
			`"io.k8s.api.apps.v1.Deployment":{"description":"Deployment enables declarative updates for Pods and ReplicaSets."`,
			`"x-kubernetes-group-version-kind":[{"group":"apps","kind":"Deployment","version":"v1"}]`,
			`"x-kubernetes-patch-merge-key":"name"`, `"fieldValidation"`,
			`"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"`,
		},
		"apis/shop.example.com/v1": {"Image is what the shop and its workers run."},
	} {
		text, err := paths[path].Schema(mediaJSON)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s:\n%s", path, part, fmt.Sprintf("%.2000s", text))
			}
		}
		if binary, err := paths[path].Schema(mediaPB); err != nil || len(binary) == 0 {
			t.Errorf("%s as protobuf: %d bytes, %v", path, len(binary), err)
		}
	}
}
