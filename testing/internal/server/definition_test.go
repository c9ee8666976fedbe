package server_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// widgets defines a kind with a default, a rule, a status and a scale.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	properties := map[string]apiextensionsv1.JSONSchemaProps{
		"size":     {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
		"replicas": {Type: "integer"},
	}
	one := float64(1)
	replicas := properties["size"]
	replicas.Minimum = &one
	properties["size"] = replicas
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {
							Type: "object", Properties: properties,
							Default: &apiextensionsv1.JSON{Raw: []byte(`{"size":1}`)},
							XValidations: apiextensionsv1.ValidationRules{{
								Rule: "self.size >= oldSelf.size", Message: "a widget does not shrink",
							}},
						},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"ready": {Type: "boolean"},
						}},
					},
				}},
			}},
		},
	}
}

func widget(name string, size int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	u.SetNamespace("default")
	u.SetName(name)
	if size != 0 {
		_ = unstructured.SetNestedField(u.Object, size, "spec", "size")
	}
	return u
}

// define creates a definition and waits until its kind is served.
func (c cluster) define(definition *apiextensionsv1.CustomResourceDefinition) {
	c.Helper()
	c.create(definition)
	for range 100 {
		c.get(definition)
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				synctest.Wait() // Discovery sees the kind.
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Fatalf("the kind is not served: %v", definition.Status)
}

func TestCustomResources(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		c.define(widgets())
		obj := widget("a", 0)
		c.create(obj)
		if size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size"); size != 1 {
			c.Errorf("the size is %d, without the default", size)
		}
		c.refused(c.Create(c.ctx, widget("b", -1)), apierrors.IsInvalid)
		_ = unstructured.SetNestedField(obj.Object, int64(3), "spec", "size")
		_ = unstructured.SetNestedField(obj.Object, true, "status", "ready")
		c.must(c.Update(c.ctx, obj))
		if _, ok, _ := unstructured.NestedBool(obj.Object, "status", "ready"); ok || obj.GetGeneration() != 2 {
			c.Errorf("after an update: %v", obj)
		}
		_ = unstructured.SetNestedField(obj.Object, true, "status", "ready")
		c.must(c.Status().Update(c.ctx, obj))
		if obj.GetGeneration() != 2 {
			c.Errorf("after an update of the status: %v", obj)
		}
		_ = unstructured.SetNestedField(obj.Object, int64(2), "spec", "size")
		err := c.Update(c.ctx, obj)
		c.refused(err, apierrors.IsInvalid)
		c.refused(err, func(err error) bool { return strings.Contains(err.Error(), "does not shrink") })
		c.refused(c.Create(c.ctx, widget("c", 1), client.FieldValidation("Strict"), client.DryRunAll),
			func(err error) bool { return err == nil })
		applied := widget("d", 5)
		c.must(c.Apply(c.ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("one")))
		c.get(applied)
	})
}

func TestDeletedDefinition(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		definition := widgets()
		c.define(definition)
		c.create(widget("a", 1))
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widget("", 0).GroupVersionKind())
		w, err := c.Watch(c.ctx, list)
		c.must(err)
		defer w.Stop()
		if got := <-w.ResultChan(); got.Type != watch.Added {
			c.Errorf("the event is %v", got)
		}
		c.must(c.Delete(c.ctx, definition))
		if got := <-w.ResultChan(); got.Type != watch.Deleted {
			c.Errorf("the event is %v", got)
		}
		time.Sleep(time.Minute)
		c.refused(c.Get(c.ctx, client.ObjectKeyFromObject(definition), definition), apierrors.IsNotFound)
		c.refused(c.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "a"}, widget("a", 1)), apierrors.IsNotFound)
	})
}

func TestDiscovery(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		c.define(widgets())
		client, err := discovery.NewDiscoveryClientForConfig(c.config)
		c.must(err)
		_, lists, err := client.ServerGroupsAndResources()
		c.must(err)
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name] = true
			}
		}
		for _, want := range []string{
			"v1 pods", "v1 pods/eviction", "v1 namespaces/finalize", "apps/v1 deployments", "apps/v1 deployments/scale",
			"autoscaling/v2 horizontalpodautoscalers", "autoscaling/v1 horizontalpodautoscalers",
			"events.k8s.io/v1 events", "apiextensions.k8s.io/v1 customresourcedefinitions",
			"example.com/v1 widgets", "example.com/v1 widgets/status",
		} {
			if !found[want] {
				c.Errorf("%s is not there", want)
			}
		}
		unaggregated := discovery.NewDiscoveryClientForConfigOrDie(c.config)
		unaggregated.UseLegacyDiscovery = true
		groups, err := unaggregated.ServerGroups()
		c.must(err)
		if i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "example.com" }); i < 0 {
			c.Errorf("the groups are %v", groups.Groups)
		}
		version, err := client.ServerVersion()
		c.must(err)
		if version.Major != "1" {
			c.Errorf("the version is %v", version)
		}
		single, err := client.ServerResourcesForGroupVersion("example.com/v1")
		c.must(err)
		if len(single.APIResources) != 2 {
			c.Errorf("there are %v", single.APIResources)
		}
	})
}

// TestFixedDefinitions has custom resources whose definitions nobody looks after.
func TestFixedDefinitions(t *testing.T) {
	options := server.Options{
		Definitions:      []*apiextensionsv1.CustomResourceDefinition{widgets()},
		FixedDefinitions: true,
	}
	run(t, options, func(c cluster) {
		time.Sleep(24 * time.Hour)
		obj := widget("a", 0)
		c.create(obj)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(obj.GroupVersionKind())
		w, err := c.Watch(c.ctx, list)
		c.must(err)
		defer w.Stop()
		c.must(c.Delete(c.ctx, obj))
		for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
			if got := <-w.ResultChan(); got.Type != want {
				c.Errorf("the event is %s, want %s", got.Type, want)
			}
		}
		synctest.Wait()
		definition := widgets()
		c.get(definition)
		definition.Labels = map[string]string{"a": "1"}
		c.must(c.Update(c.ctx, definition))
	})
}
