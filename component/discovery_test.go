package component_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// typeAndInstance returns a definition of a type, and an instance of it.
func typeAndInstance(namespace, group, kind string) (*apiextensionsv1.CustomResourceDefinition, *unstructured.Unstructured) {
	plural := strings.ToLower(kind) + "s"
	keep := true
	definition := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind),
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &keep,
				}},
			}},
		},
	}
	instance := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": strings.ToLower(kind)},
	}}
	return definition, instance
}

// discoveries returns how many requests asked what the API server serves.
func discoveries(requests *controlplane.Requests) int {
	total := 0
	for request, n := range requests.Counts() {
		parts := strings.Split(strings.Trim(request.Path, "/"), "/")
		if parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3 {
			total += n
		}
	}
	return total
}

// TestDiscoveryOfAnInstall: the number of requests that ask what the API server serves does not depend on the number of types.
func TestDiscoveryOfAnInstall(t *testing.T) {
	t.Parallel()
	const limit = 5
	c, namespace := live(t), plane.Namespace(t)
	requests := startComponents(t, plane.Config(t), namespace, assemblyOptions{}).requests
	var objects []client.Object
	for i := range 10 {
		group := namespace + ".espalier.test"
		if i%2 == 1 {
			group = fmt.Sprintf("g%d.%s", i, group)
		}
		definition, instance := typeAndInstance(namespace, group, fmt.Sprintf("Gear%d", i))
		objects = append(objects, definition, instance)
	}
	assembly := resources.NewAssembly(namespace, "all", objects...)
	requests.Reset()
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
	if n := discoveries(requests); n > limit {
		t.Errorf("there are %d requests of discovery in the install, want at most %d:\n%s", n, limit, requests)
	}
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deleted", isGone(c, assembly))
}
