package registry_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
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

	"github.com/espalier-dev/espalier/internal/testenv/registry"
)

// update has the tests on an API server write what it answers to testdata.
var update = flag.Bool("update", false, "write what an API server answers to testdata")

// sampleFiles have objects to be created. What an API server makes of them is in files with the ending ".want.yaml".
var sampleFiles = []string{"kinds", "objects"}

const sampleNamespace = "ns"

// samples returns the objects of a file. Those in the namespace "ns" are moved to another.
func samples(t testing.TB, file, namespace string) []client.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objs []client.Object
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		doc = bytes.ReplaceAll(doc, []byte("namespace: "+sampleNamespace), []byte("namespace: "+namespace))
		objs = append(objs, decode(t, doc))
	}
	return objs
}

var decoder = serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer()

func decode(t testing.TB, doc []byte) client.Object {
	t.Helper()
	obj, _, err := decoder.Decode(doc, nil, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, doc)
	}
	return obj.(client.Object)
}

// builtIn returns the strategy of the version of an object, with its type.
func builtIn(t testing.TB, obj client.Object) (registry.Type, registry.Strategy) {
	t.Helper()
	kind := obj.GetObjectKind().GroupVersionKind()
	found, ok := registry.BuiltIn(kind)
	if !ok {
		t.Fatalf("%s is not built in", kind)
	}
	for _, v := range found.Versions {
		if v.Name == kind.Version {
			return found, v.Strategy
		}
	}
	t.Fatalf("%s is not served", kind)
	return registry.Type{}, nil
}

// sampleUID is the UID that a store would have given to an object.
const sampleUID = "3c4a8a1e-0000-0000-0000-000000000001"

// masked returns an object as YAML, without what each API server sets anew, and what its admission plug-ins set.
func masked(t testing.TB, obj client.Object, namespace string) string {
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
	switch u.GetKind() {
	case "Pod":
		for _, name := range []string{"tolerations", "priority", "preemptionPolicy"} {
			unstructured.RemoveNestedField(content, "spec", name)
		}
	case "Node":
		unstructured.RemoveNestedField(content, "spec", "taints")
	case "PersistentVolume", "PersistentVolumeClaim", "VolumeAttributesClass":
		u.SetFinalizers(nil)
	case "CertificateSigningRequest":
		for _, name := range []string{"username", "groups", "extra"} {
			unstructured.RemoveNestedField(content, "spec", name)
		}
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	masked := string(text)
	masked = strings.ReplaceAll(masked, "namespace: "+namespace, "namespace: "+sampleNamespace)
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

// TestCompleted compares what strategies make of the samples with what an API server made of them.
func TestCompleted(t *testing.T) {
	t.Parallel()
	for _, file := range sampleFiles {
		wants := readWants(t, file)
		for i, obj := range samples(t, file, sampleNamespace) {
			t.Run(sampleName(obj), func(t *testing.T) {
				t.Parallel()
				if reason, ok := incomplete[obj.GetObjectKind().GroupVersionKind().Kind]; ok {
					t.Skip(reason)
				}
				_, s := builtIn(t, obj)
				obj.SetUID(sampleUID)
				s.PrepareForCreate(obj)
				if errs := s.Validate(obj); len(errs) > 0 {
					t.Errorf("refused: %v", errs.ToAggregate())
				}
				if got := masked(t, obj, sampleNamespace); got != wants[i] {
					t.Errorf("got\n%s\nwant\n%s", got, wants[i])
				}
			})
		}
	}
}

// incomplete are the kinds whose defaults are left out, with the reason.
var incomplete = map[string]string{
	"CSIDriver":                  rare,
	"FlowSchema":                 rare,
	"MutatingAdmissionPolicy":    rare,
	"PriorityLevelConfiguration": rare,
	"ResourceClaim":              rare,
	"ResourceClaimTemplate":      rare,
	"ServiceCIDR":                rare,
	"ValidatingAdmissionPolicy":  rare,
}

const rare = "operators hardly create it"

// TestCompletedOnServer creates the samples on an API server.
func TestCompletedOnServer(t *testing.T) {
	t.Parallel()
	c := serverClient(t)
	namespace := plane.Namespace(t)
	for _, file := range sampleFiles {
		var docs []string
		for _, obj := range samples(t, file, namespace) {
			kind := obj.GetObjectKind().GroupVersionKind()
			// Nothing is stored, so that the test can run again.
			if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", sampleName(obj), err)
				continue
			}
			obj.GetObjectKind().SetGroupVersionKind(kind)
			docs = append(docs, masked(t, obj, namespace))
		}
		got := strings.Join(docs, "---\n")
		path := filepath.Join("testdata", file+".want.yaml")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range readWants(t, file) {
			if i < len(docs) && docs[i] != want {
				t.Errorf("%s: the API server answers\n%s\nand not\n%s", path, docs[i], want)
			}
		}
	}
}

func readWants(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file+".want.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wants := strings.SplitAfter(string(data), "\n---\n")
	for i := range wants {
		wants[i] = strings.TrimSuffix(wants[i], "---\n")
	}
	return wants
}

func sampleName(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind()
	return kind.Kind + "." + kind.Version + "/" + obj.GetName()
}

func serverClient(t testing.TB) client.Client {
	t.Helper()
	config := plane.Config(t)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
