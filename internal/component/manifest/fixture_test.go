package manifest_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const prefix = "platform.example.com"

type m = map[string]any

// served are the kinds that the cluster serves, and whether they are namespaced.
var served = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "Namespace"}: false, {Kind: "Pod"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             false,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         false,
}

func namespaced(kind schema.GroupVersionKind) (bool, bool, error) {
	namespaced, known := served[kind.GroupKind()]
	return namespaced, known, nil
}

func options(change ...func(*manifest.Options)) manifest.Options {
	o := manifest.Options{
		Prefix: prefix, Namespace: "home", ComponentDigest: "state1",
		Scheme: clientgoscheme.Scheme, Namespaced: namespaced,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// object returns an object of a kind such as "apps/v1 Deployment", named as "name" or "namespace/name", with other fields.
func object(kind, name string, fields ...m) *unstructured.Unstructured {
	version, kind, _ := strings.Cut(kind, " ")
	metadata := m{"name": name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		metadata = m{"namespace": namespace, "name": rest}
	}
	content := m{"apiVersion": version, "kind": kind, "metadata": metadata}
	for _, f := range fields {
		for key, value := range f {
			content[key] = value
		}
	}
	return &unstructured.Unstructured{Object: content}
}

// annotated gives an object annotations of the component, given as key, value, and so on.
func annotated(u *unstructured.Unstructured, pairs ...string) *unstructured.Unstructured {
	annotations := m{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[prefix+"/"+pairs[i]] = pairs[i+1]
	}
	u.Object["metadata"].(m)["annotations"] = annotations
	return u
}

func crd(group, kind, scope string) *unstructured.Unstructured {
	name := strings.ToLower(kind) + "s." + group
	return object("apiextensions.k8s.io/v1 CustomResourceDefinition", name, m{
		"spec": m{"group": group, "scope": scope, "names": m{"kind": kind}},
	})
}

func apiService(group, version string) *unstructured.Unstructured {
	return object("apiregistration.k8s.io/v1 APIService", version+"."+group, m{"spec": m{"group": group, "version": version}})
}

func prepare(t *testing.T, objects ...client.Object) []manifest.Object {
	t.Helper()
	return prepareWith(t, options(), nil, objects...)
}

func prepareWith(t *testing.T, o manifest.Options, cache *manifest.Cache, objects ...client.Object) []manifest.Object {
	t.Helper()
	prepared, err := manifest.Prepare(objects, o, cache)
	if err != nil {
		t.Fatalf("cannot prepare: %v", err)
	}
	return prepared
}

// made returns the manifest of an object.
func made(t testing.TB, o manifest.Object) *unstructured.Unstructured {
	t.Helper()
	u, err := o.Manifest()
	if err != nil || u == nil {
		t.Fatalf("%s has the manifest %v and the error %v, want a manifest and none", o.Desired.Key, u, err)
	}
	return u
}

// view is all that can be seen of an object.
type view struct {
	Manifest     *unstructured.Unstructured
	Settings     generator.Settings
	Desired      plan.Desired
	Confidential bool
}

func views(t testing.TB, objects []manifest.Object) []view {
	t.Helper()
	var all []view
	for _, o := range objects {
		all = append(all, view{made(t, o), o.Settings, o.Desired, o.Confidential})
	}
	return all
}

// wantError checks that preparing objects fails with an error of these lines.
func wantError(t *testing.T, o manifest.Options, objects []client.Object, lines ...string) {
	t.Helper()
	prepared, err := manifest.Prepare(objects, o, nil)
	if err == nil {
		t.Fatalf("no error, but wanted:\n%s", strings.Join(lines, "\n"))
	}
	if prepared != nil {
		t.Errorf("%d objects were prepared in spite of the error, want none", len(prepared))
	}
	if want := strings.Join(lines, "\n"); err.Error() != want {
		t.Errorf("the error is\n%s\nbut wanted\n%s", err, want)
	}
}
