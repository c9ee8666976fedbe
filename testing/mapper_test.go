package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var thingKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

// isMapped reports whether a mapper knows the kind, as the resource.
func isMapped(mapper meta.RESTMapper, kind schema.GroupVersionKind, resource string) bool {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Resource == kind.GroupVersion().WithResource(resource)
}

func TestKindsCanBeAddedToTheRESTMapper(t *testing.T) {
	mapped := func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		if !isMapped(c.RESTMapper(), thingKind, "things") {
			t.Error("the kind that was added is not mapped")
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(thingKind)
		if namespaced, err := c.IsObjectNamespaced(u); err != nil || !namespaced {
			t.Errorf("it is namespaced: %v, %v", namespaced, err)
		}
		return nil
	}
	cmTests{
		"by the factory": {Resource: settings.Object(), Metadata: does(mapped)},
	}.Run(t, scheme, func(_ *testing.T, tc *cmCase, c reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
		c.RESTMapper().(*meta.DefaultRESTMapper).Add(thingKind, meta.RESTScopeNamespace)
		return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
	})
}

func TestTheRESTMapperKnowsTypesThatAreDefined(t *testing.T) {
	widget, isKnown := resources.GroupVersion.WithKind("Widget"), map[string]bool{}
	given := &rtesting.ExpectConfig{Scheme: withDefinitions(t), GivenObjects: []client.Object{establishedCRD()}}
	isKnown["given"] = isMapped(given.Config().RESTMapper(), widget, "widgets")

	c := (&rtesting.ExpectConfig{Scheme: withDefinitions(t), UseFake: true}).Config()
	mapper := c.RESTMapper()
	if isMapped(mapper, widget, "widgets") {
		t.Errorf("%s is mapped before it is defined", widget)
	}
	if err := c.Create(t.Context(), resources.CRD()); err != nil {
		t.Fatalf("the definition cannot be created: %v", err)
	}
	isKnown["created, with UseFake"] = isMapped(mapper, widget, "widgets")
	for way, known := range isKnown {
		if !known {
			t.Errorf("the definition of %s is %s: the mapper does not know the kind, want widgets", widget, way)
		}
	}
}

func establishedCRD() *apiextensionsv1.CustomResourceDefinition {
	definition := resources.CRD()
	definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
	}}
	return definition
}

func withDefinitions(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestResourcesOverrideTheGroupAndVersionOfTheirList(t *testing.T) {
	in := func(group, version, kind string) metav1.APIResource {
		return metav1.APIResource{Group: group, Version: version, Kind: kind, Name: kind + "s"}
	}
	c := &rtesting.ExpectConfig{Scheme: scheme, GivenAPIResources: []*metav1.APIResourceList{
		nil,
		{GroupVersion: "listed/v1", APIResources: []metav1.APIResource{
			in("", "", "Both"), in("own", "", "Group"), in("", "v2", "Version"), in("own", "v2", "None"),
		}},
		{APIResources: []metav1.APIResource{in("own", "v3", "Unlisted")}},
		nil,
	}}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "listed", Version: "v1", Kind: "Both"},
		{Group: "own", Version: "v1", Kind: "Group"},
		{Group: "listed", Version: "v2", Kind: "Version"},
		{Group: "own", Version: "v2", Kind: "None"},
		{Group: "own", Version: "v3", Kind: "Unlisted"},
	} {
		if !isMapped(c.Config().RESTMapper(), kind, kind.Kind+"s") {
			t.Errorf("%s is not mapped: %s", kind, c.Config().RESTMapper())
		}
	}
	if lists, err := c.Config().Discovery.ServerResourcesForGroupVersion("listed/v1"); err != nil || len(lists.APIResources) != 4 {
		t.Errorf("discovery has %v, %v", lists, err)
	}
	if lists, err := c.Config().Discovery.ServerPreferredResources(); err != nil || len(lists) != 2 {
		t.Errorf("discovery prefers %v, %v", lists, err)
	}
	c.AssertExpectations(t)
}

// Two resources of one name in groups of their own are two resources.
func TestResourcesOfOtherGroupsArePreferredToo(t *testing.T) {
	c := &rtesting.ExpectConfig{Scheme: scheme, GivenAPIResources: []*metav1.APIResourceList{
		{GroupVersion: "a/v1", APIResources: []metav1.APIResource{{Kind: "Thing", Name: "things"}}},
		{GroupVersion: "a/v2", APIResources: []metav1.APIResource{{Group: "b", Kind: "Thing", Name: "things"}}},
	}}
	if lists, err := c.Config().Discovery.ServerPreferredResources(); err != nil || len(lists) != 2 {
		t.Errorf("discovery prefers %v, %v", lists, err)
	}
}
