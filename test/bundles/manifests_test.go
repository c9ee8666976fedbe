package bundles_test

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed testdata
var testdata embed.FS

// values are what the manifests of a bundle are made from.
type values struct {
	// Namespace is the one of the component.
	Namespace string
	// Revision is 1 or 2. The second drops some objects and changes others.
	Revision int
	// WebhookURL and CABundle lead to the server of the webhook.
	WebhookURL, CABundle string
}

// kindOf is a type to define.
type kindOf struct{ Name, Plural, Scope string }

// Kinds are the types of a bundle that defines some.
func (v values) Kinds() []kindOf {
	kinds := []kindOf{{"Gadget", "gadgets", "Namespaced"}, {"Cluster", "clusters", "Cluster"}}
	if v.Revision == 1 {
		kinds = append(kinds, kindOf{"Retired", "retireds", "Namespaced"})
	}
	return kinds
}

// Fields and Text make a definition large.
func (v values) Fields() []string {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("field%d", i))
	}
	return names
}

// ServiceTypes are the types of Services that have an address in the cluster.
func (v values) ServiceTypes() []string { return []string{"ClusterIP", "NodePort", "LoadBalancer"} }

func (v values) Text() string { return strings.Repeat("A field. ", 106) }

// manifests returns the objects of a bundle as its file has them, with lists.
func manifests(t testing.TB, bundle string, v values) []*unstructured.Unstructured {
	t.Helper()
	file := bundle + ".yaml"
	source, err := template.New(file).Funcs(template.FuncMap{"lower": strings.ToLower}).ParseFS(testdata, "testdata/"+file)
	must(t, err)
	var text bytes.Buffer
	must(t, source.Execute(&text, v))
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(&text, 1<<22); ; {
		raw := runtime.RawExtension{}
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(t, err)
		if object := new(unstructured.Unstructured); len(raw.Raw) > 0 && string(raw.Raw) != "null" {
			must(t, object.UnmarshalJSON(raw.Raw))
			objects = append(objects, object)
		}
	}
}

// expanded replaces lists by their objects. In the list of a kind, objects need not say their kind.
func expanded(t testing.TB, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, object := range objects {
		kind, isList := strings.CutSuffix(object.GetKind(), "List")
		if !isList {
			all = append(all, object)
			continue
		}
		items, _, err := unstructured.NestedSlice(object.Object, "items")
		must(t, err)
		for _, item := range items {
			one := &unstructured.Unstructured{Object: item.(map[string]any)}
			if one.GetKind() == "" {
				one.SetAPIVersion(object.GetAPIVersion())
				one.SetKind(kind)
			}
			all = append(all, expanded(t, []*unstructured.Unstructured{one})...)
		}
	}
	return all
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
