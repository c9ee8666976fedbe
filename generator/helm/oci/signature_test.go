package oci_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm/oci"
)

func newKey(t testing.TB, curve elliptic.Curve) (private *ecdsa.PrivateKey, public []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// payload is what cosign signs.
func payload(digest string) string {
	return fmt.Sprintf(`{"critical":{"identity":{"docker-reference":"example.com/charts/shop"},`+
		`"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// signed returns the layer of a signature, and pushes its payload.
func (r *registry) signed(t testing.TB, key *ecdsa.PrivateKey, payload string) layer {
	t.Helper()
	sum := sha256.Sum256([]byte(payload))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return layer{"application/vnd.dev.cosign.simplesigning.v1+json", r.pushBlob([]byte(payload)), len(payload),
		map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}}
}

func (r *registry) pushSignatures(digest string, signatures ...layer) {
	r.pushManifest(strings.Replace(digest, ":", "-", 1)+".sig", manifestOf(signatures...))
}

// With a key, only what it has signed is fetched, and a tag will do.
func TestSignatures(t *testing.T) {
	t.Parallel()
	key, public := newKey(t, elliptic.P256())
	stranger, _ := newKey(t, elliptic.P256())
	none := func(digest string) string { return "none of the operator's keys has signed " + digest }
	for name, row := range map[string]struct {
		sign  func(t *testing.T, r *registry, digest string)
		class string
		want  func(digest string) string
	}{
		"signed": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, r.signed(t, key, payload(digest)))
		}, "", nil},
		"signed by others too": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, layer{}, r.signed(t, stranger, payload(digest)), r.signed(t, key, payload("a")),
				r.signed(t, key, payload(digest)))
		}, "", nil},
		"not signed yet": {func(*testing.T, *registry, string) {}, "waiting", func(digest string) string {
			return "the signature for " + digest + ": it does not exist in the registry"
		}},
		"signed by another": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, r.signed(t, stranger, payload(digest)))
		}, "terminal", none},
		"the signature of another chart": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, r.signed(t, key, payload(digestOf([]byte("another")))))
		}, "terminal", none},
		"the signature of something else": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, r.signed(t, key, strings.Replace(payload(digest), "image signature", "x", 1)))
		}, "terminal", none},
		"a signature of no JSON": {func(t *testing.T, r *registry, digest string) {
			r.pushSignatures(digest, r.signed(t, key, digest))
		}, "terminal", none},
		"another payload": {func(t *testing.T, r *registry, digest string) {
			signature := r.signed(t, key, payload("a"))
			signature.Digest = r.pushBlob([]byte(payload(digest)))
			r.pushSignatures(digest, signature)
		}, "terminal", none},
		"another blob as the payload": {func(t *testing.T, r *registry, digest string) {
			signature := r.signed(t, key, payload("a"))
			r.blobs[signature.Digest] = []byte(payload(digest))
			r.pushSignatures(digest, signature)
		}, "terminal", func(string) string {
			return "the registry returns a blob with another digest than " + digestOf([]byte(payload("a")))
		}},
		"no signature": {func(t *testing.T, r *registry, digest string) {
			signature := r.signed(t, key, payload(digest))
			signature.Annotations["dev.cosignproject.cosign/signature"] = "%"
			r.pushSignatures(digest, signature)
		}, "terminal", none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t)
			digest, options := r.push(chart("one")), r.options()
			options.Keys = [][]byte{public}
			row.sign(t, r, digest)
			for _, url := range []string{r.url("1"), r.url(digest)} {
				content, err := fetch(t, options, url)
				if row.want == nil {
					if err != nil || content.Digest != digestOf(chart("one")) {
						t.Errorf("%s: the digest is %q with the error %v, want that of the chart", url, content.Digest, err)
					}
					continue
				}
				want(t, err, row.class, url+": "+row.want(digest))
			}
		})
	}
}

// Only keys that signatures are verified with are accepted.
func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	_, other := newKey(t, elliptic.P384())
	for key, want := range map[string]string{
		string(other): "option Keys[0]: it is not an ECDSA key with the curve P-256",
		"-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----\n": "option Keys[0]: it is not a public key",
	} {
		options := oci.Options{Registries: []oci.Registry{{Host: "ghcr.io"}}, Keys: [][]byte{[]byte(key)}}
		if _, err := oci.NewSource(referenceOf, options); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// A pull secret is read when a chart is fetched, and not again.
func TestPullSecretIsReadOnce(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	r.answer = func(w http.ResponseWriter, request *http.Request) bool { return !authorized(w, request) }
	g := &generator.SourceGenerator{Source: newSource(t, r.options()), Parse: parser}
	local := newReads(pullSecret("pull", r.host()))
	ctx := contextOf(t.Context(), shop("a", r.url(digest), "pull"), local)
	for range 3 {
		objects, err := g.Generate(ctx, "north", "a", generator.UnstructurableMap{})
		if text := textOf(t, objects, err); text != "one" {
			t.Errorf("the text is %s, want one", text)
		}
	}
	if n := len(r.seen()); n != 3 || local.count != 1 {
		t.Errorf("there are %d requests and %d reads, want 3 with the one that was denied, and 1", n, local.count)
	}
	// A component that may not read the Secret does not get what another one has fetched.
	denied := newReads()
	for component, text := range map[string]string{
		"pull": `: the pull secret "pull" does not exist`,
		"":     ": the registry denies access: name a pull secret whose credentials may read it",
	} {
		ctx := contextOf(t.Context(), shop("b", r.url(digest), component), denied)
		if _, err := g.Generate(ctx, "north", "b", nil); err == nil || err.Error() != r.url(digest)+text {
			t.Errorf("the error is %v, want %s", err, text)
		}
	}
}

func TestPullSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	digest := r.push(chart("one"))
	wrongType, wrongText := pullSecret("pull", r.host()), pullSecret("pull", r.host())
	wrongType.Type, wrongText.Data[".dockerconfigjson"] = "Opaque", []byte(`{"auths": "s3cret"`)
	elsewhere := pullSecret("pull", r.host())
	elsewhere.Namespace = "south"
	failing := newReads()
	failing.err = fmt.Errorf("secrets is forbidden")
	for name, row := range map[string]struct {
		local       *reads
		class, want string
	}{
		"another type":       {newReads(wrongType), "back-off", "is not of the type kubernetes.io/dockerconfigjson"},
		"no JSON":            {newReads(wrongText), "back-off", "has no credentials for HOST"},
		"another host":       {newReads(pullSecret("pull", "example.com")), "back-off", "has no credentials for HOST"},
		"a similar host":     {newReads(pullSecret("pull", strings.TrimSuffix(r.host(), "0")+"00")), "back-off", "has no credentials for HOST"},
		"another repository": {newReads(pullSecret("pull", r.host()+"/charts/sho")), "back-off", "has no credentials for HOST"},
		"another namespace":  {newReads(elsewhere), "waiting", "does not exist"},
		"no right":           {failing, "back-off", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := contextOf(t.Context(), shop("shop", r.url(digest), "pull"), row.local)
			_, err := newSource(t, r.options()).Fetch(ctx)
			text := `the pull secret "pull" ` + strings.ReplaceAll(row.want, "HOST", r.host())
			if name == "no right" {
				text = `unable to read the pull secret "pull": secrets is forbidden`
			}
			want(t, err, row.class, r.url(digest)+": "+text)
			if n := len(r.seen()); n != 0 {
				t.Errorf("there are %d requests, want none", n)
			}
		})
	}
}
