package managedfields

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/yaml"
)

// TestKeyedListsAreThoseOfTheSchemas compares the table with the schemas that client-go has of the built-in types.
func TestKeyedListsAreThoseOfTheSchemas(t *testing.T) {
	want := map[string]bool{}
	converter := applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		typed, err := converter.ObjectToTyped(object)
		// Of the kinds left out, nodes and drivers have objects.
		if err != nil || gvk.Version != "v1" || slices.Contains([]string{"ComponentStatus", "CSINode", "Node", "ResourceSlice"}, gvk.Kind) {
			continue
		}
		addLists(want, gvk.GroupKind().String(), typed.Schema(), typed.TypeRef(), nil)
	}
	got := map[string]bool{}
	for kind, lists := range keyedLists {
		flatten(got, kind.String(), lists)
	}
	for list := range want {
		if !got[list] {
			t.Errorf("the lists lack %s, want all of the schemas", list)
		}
	}
	for list := range got {
		if !want[list] && !strings.Contains(list, ".spec []") && !strings.HasSuffix(list, "template.spec []") {
			t.Errorf("the list %s is not in the schemas, want only those of the schemas", list)
		}
	}
}

func addLists(to map[string]bool, path string, s *schema.Schema, ref schema.TypeRef, around []string) {
	if ref.NamedType != nil {
		if slices.Contains(around, *ref.NamedType) {
			return
		}
		around = append(slices.Clone(around), *ref.NamedType)
	}
	atom, _ := s.Resolve(ref)
	if list := atom.List; list != nil && list.ElementRelationship == schema.Associative {
		to[fmt.Sprintf("%s %v", path, list.Keys)] = true
		addLists(to, path, s, list.ElementType, around)
	}
	if atom.Map == nil {
		return
	}
	for _, field := range atom.Map.Fields {
		if field.Name != "status" && field.Name != "metadata" {
			addLists(to, path+"."+field.Name, s, field.Type, around)
		}
	}
}

func flatten(to map[string]bool, path string, lists []keyedList) {
	for _, list := range lists {
		at := path + "." + strings.Join(list.path, ".")
		to[fmt.Sprintf("%s %v", at, list.keys)] = true
		flatten(to, at, list.within)
	}
}

// TestDuplicatesAreThoseOfServerSideApply compares the check with that of server-side apply.
func TestDuplicatesAreThoseOfServerSideApply(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
	const pod = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, %s}]}}}"
	for name, test := range map[string]struct{ object, want string }{
		"env":             {fmt.Sprintf(pod, "env: [{name: A, value: '1'}, {name: B}, {name: A, value: '2'}]"), "spec.template.spec.containers[0].env: name A"},
		"different env":   {fmt.Sprintf(pod, "env: [{name: A, value: '1'}, {name: B, value: '1'}]"), ""},
		"ports":           {fmt.Sprintf(pod, "ports: [{containerPort: 80, name: a}, {containerPort: 80, protocol: TCP, name: b}]"), "spec.template.spec.containers[0].ports: containerPort 80 and protocol TCP"},
		"different ports": {fmt.Sprintf(pod, "ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]"), ""},
		"mounts":          {fmt.Sprintf(pod, "volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]"), "spec.template.spec.containers[0].volumeMounts: mountPath /a"},
		"second init":     {"apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {initContainers: [{name: a}, {name: b, env: [{name: A}, {name: A}]}]}}}}}", "spec.jobTemplate.spec.template.spec.initContainers[1].env: name A"},
		"service":         {"apiVersion: v1\nkind: Service\nspec: {ports: [{port: 1}, {port: 1, protocol: TCP}]}", "spec.ports: port 1 and protocol TCP"},
		"webhooks":        {"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nwebhooks: [{name: a, matchConditions: [{name: b}, {name: b}]}]", "webhooks[0].matchConditions: name b"},
		"values":          {"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nspec: {validationActions: [Deny, Audit, Deny]}", "spec.validationActions: the value Deny"},
		"tolerations":     {"apiVersion: v1\nkind: Pod\nspec: {tolerations: [{key: a}, {key: a}]}", ""},
		"other kind":      {"apiVersion: v1\nkind: Secret\ndata: {a: YQ==}", ""},
		"nothing in it":   {"apiVersion: v1\nkind: Service", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), object); err != nil {
				t.Fatal(err)
			}
			object.SetName("a")
			got, found := "", DuplicateIn(object.GroupVersionKind().GroupKind(), object.Object)
			if found != nil {
				got = found.List + ": " + found.Keys
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			_, refused := converter.ObjectToTyped(runtime.Object(object))
			if (refused != nil) != (found != nil) {
				t.Errorf("server-side apply says %v and the check %v, want both to refuse or to accept", refused, found)
			}
		})
	}
}

// TestDuplicatesOfMalformed: what is no list, or no object, is left to the API server.
func TestDuplicatesOfMalformed(t *testing.T) {
	for _, spec := range []any{nil, 1, "a", []any{"a", "a"}, []any{nil, nil}, map[string]any{"ports": []any{1, 1, nil}}, map[string]any{"ports": map[string]any{}}} {
		if found := DuplicateIn(kschema.GroupKind{Kind: "Service"}, map[string]any{"spec": spec}); found != nil {
			t.Errorf("%v: %v", spec, found)
		}
	}
}
