package takeover_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// deployLegacy deploys a component of a kind with a definition of the old engine. It has one object, with an update
// policy.
func deployLegacy(t *testing.T, c client.Client, kind, policy string) *unstructured.Unstructured {
	t.Helper()
	o, namespace := &oldComponent{}, plane.Namespace(t)
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": namespace, "name": "settings",
			"annotations": map[string]any{oldName + "/update-policy": policy},
		},
	}}
	system := &corev1.Namespace{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	o.mark(string(system.UID), namespace)
	shop := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": "shop", "finalizers": []any{oldName}},
	}}
	shop.SetGroupVersionKind(resources.GroupVersion.WithKind(kind))
	if err := c.Create(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	status, _ := json.Marshal(map[string]any{"status": map[string]any{"inventory": []any{o.write(t, c, manifest)}}})
	if err := c.Status().Patch(t.Context(), shop, client.RawPatch(types.MergePatchType, status)); err != nil {
		t.Fatal(err)
	}
	return shop
}

// TestDefinitionOfThePast refuses to write an inventory that the API server would not keep.
func TestDefinitionOfThePast(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for policy, want := range map[string]string{
		"replace":      "the API server drops the UIDs of an inventory",
		"ssa-override": `Unsupported value: "ApplyOverride"`,
	} {
		shop, d := deployLegacy(t, c, "Legacy", policy), newDoor(t, plane.Config(t))
		d.kind = "Legacy"
		out, err := d.run(t, shop.GetNamespace())
		const advice = ": apply the CustomResourceDefinition of the new operator first; nothing was written"
		said := fmt.Sprint(err)
		if !strings.Contains(said, want) || !strings.HasSuffix(said, advice) || d.writes > 0 {
			t.Errorf("%s: after %d writes the error is %s, want %q with advice and no write\n%s",
				policy, d.writes, said, want, out)
		}
	}
}

// TestDefinitions hands a component over with the definition of an operator of today, which does not allow a word in
// the old inventory, and gives it back with that of the old one, which does not keep all that is in ours.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shop, d := deployLegacy(t, c, "Moved", "ssa-override"), newDoor(t, plane.Config(t))
	d.kind = "Moved"
	inventory := func() any {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			t.Fatal(err)
		}
		all, _, _ := unstructured.NestedSlice(shop.Object, "status", "inventory")
		return all
	}
	before := inventory()

	define(t, c, ourStatus(t))
	if out, err := d.run(t, shop.GetNamespace()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := fmt.Sprint(inventory()); !strings.Contains(text, "uid:") || !strings.Contains(text, "ApplyOverride") {
		t.Errorf("the inventory is %s, want one with UIDs and the policy ApplyOverride", text)
	}
	out, err := d.run(t, shop.GetNamespace(), "--rollback")
	const advice = "apply the CustomResourceDefinition of the old operator first"
	if err == nil || !strings.Contains(err.Error(), `"SsaOverride"`) || !strings.Contains(err.Error(), advice) {
		t.Errorf("with our definition a rollback ends with %v, want an error about a word of the old one\n%s", err, out)
	}

	define(t, c, legacyCRD("Moved").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"])
	if out, err := d.run(t, shop.GetNamespace(), "--rollback"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := gocmp.Diff(before, inventory()); diff != "" {
		t.Errorf("the inventory that is given back differs (-before, +after):\n%s", diff)
	}
}

// ourStatus returns the schema of the status of one of our components.
func ourStatus(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile("../../../../examples/platform/config/crd/platform.example.com_platforms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
}

// define gives the kind Moved a status with that schema, and waits until the API server has it.
func define(t *testing.T, c client.Client, status apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	_, ours := status.Properties["inventory"].Items.Schema.Properties["uid"]
	key := client.ObjectKey{Name: "moveds." + resources.GroupVersion.Group}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), key, definition); err != nil {
		t.Fatal(err)
	}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
	if err := c.Update(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(resources.GroupVersion.WithKind("Moved"))
	probe.SetNamespace(plane.Namespace(t))
	probe.SetName("probe")
	if err := c.Create(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the definition does not count", func(ctx context.Context) error {
		record := `{"status":{"inventory":[{"version":"v1","kind":"Pod","name":"a","uid":"1"}]}}`
		live := probe.DeepCopy()
		patch := client.RawPatch(types.MergePatchType, []byte(record))
		if err := c.Status().Patch(ctx, live, patch, client.DryRunAll); err != nil {
			return err
		}
		if kept := strings.Contains(fmt.Sprint(live.Object["status"]), "uid:"); kept != ours {
			return fmt.Errorf("UIDs are kept: %v, want %v", kept, ours)
		}
		return nil
	})
}
