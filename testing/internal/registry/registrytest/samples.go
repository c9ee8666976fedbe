package registrytest

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

// Files with answers, below the folder of this package.
const (
	CreatedFile    = "testdata/samples.want.yaml"
	ManagedFile    = "testdata/samples.managed.yaml"
	OutcomesFile   = "testdata/refused.want.yaml"
	TraitsFile     = "testdata/kinds.traits.yaml"
	DiscoveredFile = "testdata/discovery.yaml"
)

// Namespace is the namespace of objects, unless they are moved to another one.
const Namespace = "ns"

// Samples returns objects to be created: one of each kind that an API server serves by default, and further ones of
// what operators use most.
func Samples(t testing.TB, namespace string) []client.Object {
	t.Helper()
	return slices.Concat(Kinds(t, namespace), samples(t, "objects", namespace), samples(t, "documented", namespace))
}

// Kinds returns those samples that are the only ones of their kind.
func Kinds(t testing.TB, namespace string) []client.Object {
	t.Helper()
	return samples(t, "kinds", namespace)
}

func samples(t testing.TB, file, namespace string) []client.Object {
	t.Helper()
	data := read(t, "testdata/"+file+".yaml")
	var objs []client.Object
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		objs = append(objs, Decode(t, move(doc, namespace)))
	}
	return objs
}

// move moves objects from the namespace "ns" to another one.
func move(doc []byte, namespace string) []byte {
	return bytes.ReplaceAll(doc, []byte("namespace: "+Namespace), []byte("namespace: "+namespace))
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := testdata.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var decoder = serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer()

// Decode returns an object of a built-in kind that is written in YAML or JSON.
func Decode(t testing.TB, doc []byte) client.Object {
	t.Helper()
	obj, _, err := decoder.Decode(doc, nil, nil)
	if err != nil {
		t.Fatalf("the object is not decoded (%v), want it to be:\n%s", err, doc)
	}
	return obj.(client.Object)
}

// Encode returns a value as YAML.
func Encode(t testing.TB, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Name returns the name under which there are answers about a sample.
func Name(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind()
	return kind.Kind + "." + kind.Version + "/" + obj.GetName()
}

// Create creates the samples on an API server, and returns what it answers by the names of the samples. Nothing is
// stored.
func Create(t testing.TB, c client.Client, namespace string) map[string]string {
	t.Helper()
	return create(t, c, namespace, func(obj client.Object) string { return Masked(t, obj, namespace) })
}

// CreateManaged creates the samples on an API server, and returns the managed fields that it answers.
func CreateManaged(t testing.TB, c client.Client, namespace string) map[string]string {
	t.Helper()
	return create(t, c, namespace, func(obj client.Object) string {
		var entries []string
		for _, e := range obj.GetManagedFields() {
			entries = append(entries, fmt.Sprintf("%s %s %s %s%s", e.Manager, e.Operation, e.APIVersion, e.Subresource,
				e.FieldsV1.GetRawBytes()))
		}
		return strings.Join(entries, "\n")
	})
}

func create(
	t testing.TB, c client.Client, namespace string, answer func(obj client.Object) string,
) map[string]string {
	t.Helper()
	answers := map[string]string{}
	for _, obj := range Samples(t, namespace) {
		kind, name := obj.GetObjectKind().GroupVersionKind(), Name(obj)
		if _, ok := answers[name]; ok {
			t.Errorf("%s: there are two samples, want one", name)
		}
		if err := c.Create(t.Context(), obj, client.DryRunAll, client.FieldOwner("creator")); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(kind)
		answers[name] = answer(obj)
	}
	return answers
}

// Created returns what a real API server made of the samples, by their names.
func Created(t testing.TB) map[string]string {
	t.Helper()
	return decodeYAML[map[string]string](t, CreatedFile)
}

// CreatedManaged returns the managed fields of the samples on a real API server, by their names.
func CreatedManaged(t testing.TB) map[string]string {
	t.Helper()
	return decodeYAML[map[string]string](t, ManagedFile)
}

func decodeYAML[T any](t testing.TB, file string) T {
	t.Helper()
	var value T
	if err := yaml.UnmarshalStrict(read(t, file), &value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return value
}

// Masked returns an object as YAML, without what is another in each run.
func Masked(t testing.TB, obj client.Object, namespace string) string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(content, "metadata", name)
	}
	u.SetNamespace("")
	unstructured.RemoveNestedField(content, "status", "lastPhaseTransitionTime")
	if u.GetKind() == "CertificateSigningRequest" {
		for _, name := range []string{"username", "groups", "extra"} {
			unstructured.RemoveNestedField(content, "spec", name)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, condition := range conditions {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(content, conditions, "status", "conditions")
	}
	masked := Encode(t, content)
	masked = strings.ReplaceAll(masked, "namespace: "+namespace, "namespace: "+Namespace)
	if obj.GetUID() != "" {
		masked = strings.ReplaceAll(masked, string(obj.GetUID()), "UID")
	}
	if s, ok := obj.(*corev1.Service); ok {
		masked = maskAllocated(masked, &s.Spec)
	}
	return masked
}

// maskAllocated masks what was allocated for a service.
func maskAllocated(text string, spec *corev1.ServiceSpec) string {
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone {
		text = strings.ReplaceAll(text, spec.ClusterIP, "ADDRESS")
	}
	if spec.HealthCheckNodePort != 0 {
		text = strings.ReplaceAll(text, strconv.Itoa(int(spec.HealthCheckNodePort)), "PORT")
	}
	for _, port := range spec.Ports {
		if port.NodePort != 0 && port.NodePort != 30099 {
			text = strings.ReplaceAll(text, "nodePort: "+strconv.Itoa(int(port.NodePort)), "nodePort: PORT")
		}
	}
	return text
}
