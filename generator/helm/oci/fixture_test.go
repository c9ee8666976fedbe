package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/generator/helm/oci"
)

// registry is the part of the distribution API that fetches use.
type registry struct {
	*httptest.Server
	// answer handles a request itself if it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool

	mu        sync.Mutex
	manifests map[string][]byte
	blobs     map[string][]byte
	requests  []*http.Request
}

func newRegistry() *registry {
	r := &registry{manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	r.Server = httptest.NewTLSServer(r)
	return r
}

func startRegistry(t testing.TB) *registry {
	t.Helper()
	r := newRegistry()
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, request)
	name := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	content, ok := r.manifests[name]
	if strings.Contains(request.URL.Path, "/blobs/") {
		content, ok = r.blobs[name]
	}
	r.mu.Unlock()
	switch {
	case r.answer != nil && r.answer(w, request):
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(content)
	}
}

// seen returns the requests since the last call.
func (r *registry) seen() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.requests
	r.requests = nil
	return seen
}

func (r *registry) host() string { return r.Listener.Addr().String() }

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func (r *registry) pushBlob(content []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digestOf(content)] = content
	return digestOf(content)
}

func (r *registry) pushManifest(tag string, content []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manifests[digestOf(content)], r.manifests[tag] = content, content
	return digestOf(content)
}

type layer struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func manifestOf(layers ...layer) []byte {
	text, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers,
	})
	if err != nil {
		panic(err)
	}
	return text
}

// push pushes an archive as version 1 of a chart, and returns the digest of its manifest.
func (r *registry) push(archive []byte) string {
	return r.pushManifest("1", manifestOf(layer{oci.ChartMediaType, r.pushBlob(archive), len(archive), nil}))
}

// url is that of the chart with this digest, or of a tag.
func (r *registry) url(version string) string {
	if strings.Contains(version, ":") {
		return "oci://" + r.host() + "/charts/shop@" + version
	}
	return "oci://" + r.host() + "/charts/shop:" + version
}

func (r *registry) options() oci.Options {
	// All servers of tests have the same certificate.
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	return oci.Options{Registries: []oci.Registry{{Host: r.host(), Internal: true, RootCAs: roots}}}
}

// entry is a file of an archive.
type entry struct {
	name, content string
	kind          byte
}

func pack(entries ...entry) []byte {
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.kind != 0 {
			header.Typeflag, header.Linkname = e.kind, "/etc/passwd"
		}
		if err := archive.WriteHeader(header); err != nil {
			panic(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			panic(err)
		}
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	if err := zipped.Close(); err != nil {
		panic(err)
	}
	return buffer.Bytes()
}

// chart is the archive of a chart with a ConfigMap that contains text.
func chart(text string) []byte {
	return pack(
		entry{name: "shop/Chart.yaml", content: "apiVersion: v2\nname: shop\nversion: 1.0.0\n"},
		entry{name: "shop/templates/a.yaml", content: "apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: {{ .Release.Name }}}\ndata: {text: " + text + "}\n"},
	)
}

// parser is a function for SourceGenerator.Parse that makes generators for charts.
func parser(files fs.FS) (generator.Generator, error) {
	return helm.NewGenerator(files, "", helm.Options{})
}

// shop is a resource that asks for a chart.
func shop(name, url, pullSecret string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: name, UID: types.UID(name)},
		Data:       map[string]string{"url": url, "secret": pullSecret},
	}
}

func referenceOf(c *corev1.ConfigMap) oci.Reference {
	return oci.Reference{URL: c.Data["url"], PullSecretName: c.Data["secret"]}
}

func newSource(t testing.TB, options oci.Options) *oci.Source {
	t.Helper()
	source, err := oci.NewSource(referenceOf, options)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// reads counts the reads of a client.
type reads struct {
	client.Client
	count int
	err   error
}

func newReads(objects ...client.Object) *reads {
	r := &reads{}
	r.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			r.count++
			if r.err != nil {
				return r.err
			}
			return c.Get(ctx, key, o)
		},
	}).Build()
	return r
}

func contextOf(ctx context.Context, resource client.Object, local client.Client) context.Context {
	return generator.NewContext(ctx).WithReconcilerName("shops.example.com").WithComponent(resource).
		WithComponentRevision(1).WithLocalClient(local)
}

// fetch fetches what a new source with the options returns for a URL.
func fetch(t testing.TB, options oci.Options, url string) (generator.Content, error) {
	t.Helper()
	return newSource(t, options).Fetch(contextOf(t.Context(), shop("shop", url, ""), newReads()))
}
