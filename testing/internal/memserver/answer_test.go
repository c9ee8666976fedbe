package memserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

func TestAnswersHaveTheManagedFieldsOfTheWrite(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	defer server.Close()
	c, _ := server.Build(fake.NewClientBuilder().WithReturnManagedFields())
	has := func(obj client.Object, manager string) {
		t.Helper()
		for _, entry := range obj.GetManagedFields() {
			if entry.Manager == manager {
				return
			}
		}
		t.Errorf("the answer does not tell of %s: %v", manager, obj.GetManagedFields())
	}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: data{"a": "1"}}
	if err := c.Create(t.Context(), obj, client.FieldOwner("creator")); err != nil {
		t.Fatal(err)
	}
	has(obj, "creator")
	obj.Data["b"] = "1"
	if err := c.Update(t.Context(), obj, client.FieldOwner("updater")); err != nil {
		t.Fatal(err)
	}
	has(obj, "updater")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"c":"1"}}`))
	if err := c.Patch(t.Context(), obj, patch, client.FieldOwner("patcher")); err != nil {
		t.Fatal(err)
	}
	has(obj, "patcher")
	dry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dry"}}
	if err := c.Create(t.Context(), dry, client.DryRunAll); err != nil {
		t.Errorf("a dry run failed: %v", err)
	}
}

func TestUnknownKindsCanBeListedAndFoundWithoutAKind(t *testing.T) {
	server := memserver.New(clientgoscheme.Scheme)
	defer server.Close()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(kind)
	gadget.SetNamespace("default")
	gadget.SetName("gadget")
	c, _ := server.Build(fake.NewClientBuilder().WithObjects(gadget))

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("GadgetList"))
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "gadget" {
		t.Errorf("listed %v, %v", list.Items, err)
	}
	all := server.All(kind.GroupVersion().WithResource("gadgets"))
	if len(all) != 1 || all[0].GetName() != "gadget" {
		t.Errorf("found %v", all)
	}
	all[0].SetName("changed")
	if again := server.All(kind.GroupVersion().WithResource("gadgets")); again[0].GetName() != "gadget" {
		t.Error("what is returned is no copy")
	}
}
