package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/testing/fake"
)

// files are those of a chart. One without Chart.yaml gets one.
type files map[string]string

const chartYAML = "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: \"4.5\"\n"

func (f files) withChart() files {
	out := files{"Chart.yaml": chartYAML}
	maps.Copy(out, f)
	return out
}

func (f files) folder() fstest.MapFS {
	folder := fstest.MapFS{}
	for name, content := range f.withChart() {
		folder[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return folder
}

// packed returns an archive of the files. Their names are what the archive has.
func packed(t testing.TB, f files) string {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(f[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(f[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// in puts files into a folder.
func (f files) in(folder string) files {
	out := files{}
	for name, content := range f.withChart() {
		out[folder+"/"+name] = content
	}
	return out
}

func (f files) and(others ...files) files {
	out := maps.Clone(f)
	for _, other := range others {
		maps.Copy(out, other)
	}
	return out
}

func configMap(name string, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n" + data
}

// countingDiscovery counts what it is asked.
type countingDiscovery struct {
	discovery.DiscoveryInterface
	asked int
}

func (d *countingDiscovery) ServerVersion() (*version.Info, error) {
	d.asked++
	return d.DiscoveryInterface.ServerVersion()
}

func newDiscovery() *countingDiscovery {
	return &countingDiscovery{DiscoveryInterface: &fakediscovery.FakeDiscovery{
		FakedServerVersion: &version.Info{Major: "1", Minor: "34", GitVersion: "v1.34.2"},
		Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Namespaced: true}}},
			{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		}},
	}}
}

// cluster is what a chart is rendered for.
type cluster struct {
	client    client.Client
	discovery *countingDiscovery
	revision  int64
	uid       types.UID
}

func newCluster(objects ...client.Object) *cluster {
	return intercepted(interceptor.Funcs{}, objects...)
}

func intercepted(funcs interceptor.Funcs, objects ...client.Object) *cluster {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return &cluster{
		client:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(),
		discovery: newDiscovery(),
		revision:  1,
		uid:       "7",
	}
}

func (c *cluster) context(ctx context.Context) context.Context {
	resource := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "north", UID: c.uid}}
	return generator.NewContext(ctx).WithReconcilerName("shops.example.com").WithComponent(resource).
		WithComponentRevision(c.revision).WithClient(c.client).WithLocalClient(c.client).WithDiscovery(c.discovery)
}

func load(t testing.TB, f files, options helm.Options) *helm.Generator {
	t.Helper()
	made, err := helm.NewGenerator(f.folder(), "", options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// values are parameters written as YAML.
func values(t testing.TB, text string) generator.Unstructurable {
	t.Helper()
	parameters := generator.UnstructurableMap{}
	if err := yaml.Unmarshal([]byte(text), &parameters); err != nil {
		t.Fatal(err)
	}
	return parameters
}

// rendered returns the objects as YAML documents.
func rendered(t testing.TB, objects []client.Object) string {
	t.Helper()
	var documents []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n")
}

func generate(t testing.TB, made *helm.Generator, c *cluster, parameters string) []client.Object {
	t.Helper()
	objects, err := made.Generate(c.context(t.Context()), "north", "shop", values(t, parameters))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// dataOf returns the data of the ConfigMap that is rendered.
func dataOf(t testing.TB, objects []client.Object) map[string]any {
	t.Helper()
	if len(objects) != 1 {
		t.Fatalf("want 1 object, got %d:\n%s", len(objects), rendered(t, objects))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(objects[0])
	if err != nil {
		t.Fatal(err)
	}
	data, _ := content["data"].(map[string]any)
	return data
}
