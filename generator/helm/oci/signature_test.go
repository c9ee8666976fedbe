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
	"strings"
	"testing"

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
