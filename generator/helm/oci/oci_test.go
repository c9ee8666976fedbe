package oci_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/generator/helm/oci"
)

// want checks the class and the text of an error.
func want(t *testing.T, err error, class, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error, want %q", text)
	}
	got := "back-off"
	var retriable *generator.RetriableError
	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
		got = "terminal"
	case errors.As(err, &retriable):
		got = "waiting"
	}
	if got != class || err.Error() != text {
		t.Errorf("the error is %s: %s\nwant %s: %s", got, err, class, text)
	}
}

func textOf(t *testing.T, objects []client.Object, err error) string {
	t.Helper()
	if err != nil || len(objects) != 1 {
		t.Fatalf("there are the objects %v and the error %v, want one object", objects, err)
	}
	return objects[0].(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["data"].(map[string]any)["text"].(string)
}

// A chart is fetched once for all components, and nothing is fetched at rest.
func TestChartIsFetchedOnce(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	first, second := r.push(chart("one")), r.push(chart("two"))
	g := &generator.SourceGenerator{Source: newSource(t, r.options()), Parse: parser}
	if _, err := g.ContentDigest(contextOf(t.Context(), shop("shop", r.url(first), ""), nil)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, component, digest, text string
		requests                      int
	}{
		{"the first component", "a", first, "one", 0},
		{"another component", "b", first, "one", 0},
		{"another chart", "b", second, "two", 2},
		{"the first component again", "a", first, "one", 0},
		{"the second component again", "b", second, "two", 0},
	} {
		if step.name == "the first component" {
			if n := len(r.seen()); n != 2 {
				t.Errorf("there are %d requests for a chart, want one for the manifest and one for the layer", n)
			}
		}
		ctx := contextOf(t.Context(), shop(step.component, r.url(step.digest), ""), nil)
		if inputs, err := g.Inputs(ctx, "north", step.component); err != nil || !strings.HasPrefix(inputs, "sha256:") {
			t.Errorf("%s: the inputs are %q with the error %v, want a digest", step.name, inputs, err)
		}
		objects, err := g.Generate(ctx, "north", step.component, generator.UnstructurableMap{})
		if text := textOf(t, objects, err); text != step.text {
			t.Errorf("%s: the text is %s, want %s", step.name, text, step.text)
		}
		if n := len(r.seen()); n != step.requests {
			t.Errorf("%s: there are %d requests, want %d", step.name, n, step.requests)
		}
	}
}

// Components that ask for a chart at the same time have it fetched once.
func TestConcurrentFetchesAreOne(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	names := strings.Split("abcdefghijklmnop", "")
	var asking, all sync.WaitGroup
	asking.Add(len(names))
	r.answer = func(http.ResponseWriter, *http.Request) bool {
		asking.Wait()
		return false
	}
	g := &generator.SourceGenerator{Source: newSource(t, r.options()), Parse: parser}
	for _, name := range names {
		all.Go(func() {
			asking.Done()
			ctx := contextOf(t.Context(), shop(name, r.url(digest), ""), nil)
			if _, err := g.Generate(ctx, "north", name, generator.UnstructurableMap{}); err != nil {
				t.Errorf("component %s: %v", name, err)
			}
		})
	}
	all.Wait()
	if n := len(r.seen()); n != 2 {
		t.Errorf("there are %d requests, want 2", n)
	}
}

// A folder that is no chart keeps its structure.
func TestFolder(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	archive := pack(entry{name: "./", kind: '5'}, entry{name: "./kustomization.yaml", content: "resources: [a/b.yaml]"},
		entry{name: "a/b.yaml", content: "kind: List"})
	digest := r.pushManifest("1", manifestOf(layer{"application/vnd.cncf.flux.config.v1+json", "", 0, nil},
		layer{oci.FluxMediaType, r.pushBlob(archive), len(archive), nil}))
	options := r.options()
	options.MediaTypes = []string{oci.FluxMediaType, oci.TarMediaType}
	content, err := fetch(t, options, r.url(digest))
	if err != nil {
		t.Fatal(err)
	}
	if content.Digest != digestOf(archive) || content.Size < 20 {
		t.Errorf("the content has the digest %s and %d bytes, want those of the archive", content.Digest, content.Size)
	}
	if err := fstest.TestFS(content.Files, "kustomization.yaml", "a/b.yaml"); err != nil {
		t.Error(err)
	}
	file, err := content.Files.Open("a/b.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); string(text) != "kind: List" {
		t.Errorf("the file has the text %q with the error %v, want that of the archive", text, err)
	}
}

// What is refused by its reference costs no request.
func TestReferencesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	form := "the URL is not of the form oci://host/repository@sha256:digest"
	for url, text := range map[string]string{
		"":                                                   form,
		"https://ghcr.io/a/b@" + digest:                      form,
		"oci://ghcr.io":                                      form,
		"oci://ghcr.io/a/../b@" + digest:                     form,
		"oci://ghcr.io/A@" + digest:                          form,
		"oci://ghcr.io/a@sha256:123":                         form,
		"oci://ghcr.io/a?b@" + digest:                        form,
		"oci://ghcr.io/" + strings.Repeat("a", 600):          form,
		"oci://user:s3cret@ghcr.io/a@" + digest:              "the URL has a user: name a pull secret instead",
		"oci://ghcr.io/a@sha512:" + strings.Repeat("a", 128): "the URL has another digest than sha256",
		"oci://ghcr.io/a@" + digest:                          "oci://ghcr.io/a@" + digest + ": the operator does not allow the host ghcr.io",
		"oci://169.254.169.254/a@" + digest: "oci://169.254.169.254/a@" + digest +
			": the operator does not allow the host 169.254.169.254",
		"oci://" + r.host() + ".example.com/a@" + digest: form,
		r.url("1"): r.url("1") + ": a tag can be moved, and the operator has no key to verify a signature: " +
			"append @sha256:digest",
		"oci://" + r.host() + "/charts/shop": "oci://" + r.host() + "/charts/shop" +
			": it has neither a tag nor a digest: append @sha256:digest",
	} {
		t.Run(url, func(t *testing.T) {
			_, err := fetch(t, r.options(), url)
			want(t, err, "terminal", text)
			if n := len(r.seen()); n != 0 {
				t.Errorf("there are %d requests, want none", n)
			}
		})
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	listed := []oci.Registry{{Host: "ghcr.io"}}
	for name, row := range map[string]struct {
		options oci.Options
		want    string
	}{
		"no registries": {oci.Options{}, "option Registries: it is required: nothing is reached that it does not list"},
		"no host":       {oci.Options{Registries: []oci.Registry{{}}}, `option Registries[0]: "" is no host: it is a name or an address, with a port if URLs have one`},
		"a URL":         {oci.Options{Registries: []oci.Registry{{Host: "a", BlobHosts: []string{"https://b"}}}}, `option Registries[0]: "https://b" is no host: it is a name or an address, with a port if URLs have one`},
		"no key":        {oci.Options{Registries: listed, Keys: [][]byte{[]byte("a")}}, "option Keys[0]: it is not PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := oci.NewSource(referenceOf, row.options); err == nil || err.Error() != row.want {
				t.Errorf("the error is %v, want %s", err, row.want)
			}
		})
	}
}

// A chart from a registry gives the same objects as the same archive in a folder.
func TestChartsAreThoseOfArchives(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"definitions", "documents", "hooks", "includes", "nulls"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var entries []entry
			folder := os.DirFS("../testdata/corpus/" + name)
			err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
				// The command helm package leaves out hidden files.
				if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
					return err
				}
				content, err := fs.ReadFile(folder, path)
				entries = append(entries, entry{name: name + "/" + path, content: string(content)})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			r := startRegistry(t)
			archive := pack(entries...)
			digest := r.push(archive)
			direct, err := helm.NewGenerator(fstest.MapFS{"a.tgz": {Data: archive}}, "a.tgz", helm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx := contextOf(t.Context(), shop("shop", r.url(digest), ""), nil)
			ctx = generator.NewContext(ctx).WithClient(newReads()).WithDiscovery(&fakediscovery.FakeDiscovery{
				Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{GitVersion: "v1.34.2"},
			})
			wanted, wantErr := direct.Generate(ctx, "north", "shop", generator.UnstructurableMap{})
			fetched := &generator.SourceGenerator{Source: newSource(t, r.options()), Parse: parser}
			got, err := fetched.Generate(ctx, "north", "shop", generator.UnstructurableMap{})
			if err != nil || wantErr != nil || len(got) == 0 {
				t.Fatalf("there are %d objects and the errors %v and %v, want objects", len(got), err, wantErr)
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("the objects differ from those of the archive (-want +got):\n%s", diff)
			}
		})
	}
}

// Plain HTTP needs an option, also for a registry that speaks nothing else.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	plain := httptest.NewServer(r)
	t.Cleanup(plain.Close)
	host := plain.Listener.Addr().String()
	options, url := oci.Options{Registries: []oci.Registry{{Host: host, Internal: true}}}, "oci://"+host+"/charts/shop@"+digest
	_, err := fetch(t, options, url)
	want(t, err, "waiting", url+": the registry cannot be reached")
	options.Registries[0].PlainHTTP = true
	if _, err := fetch(t, options, url); err != nil {
		t.Error(err)
	}
}
