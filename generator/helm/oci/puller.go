package oci

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

const (
	maxManifest  = 1 << 20
	maxRedirects = 5
	manifestType = ocispec.MediaTypeImageManifest + ", application/vnd.docker.distribution.manifest.v2+json"
)

// puller makes the requests of one fetch.
type puller struct {
	reference registry.Reference
	base      string
	transport *http.Transport
	client    *auth.Client
}

func (r *Registry) puller(reference registry.Reference, credential auth.Credential) *puller {
	p := &puller{reference: reference, transport: r.transport()}
	p.base = "https://" + reference.Registry + "/v2/" + reference.Repository
	if r.PlainHTTP {
		p.base = strings.Replace(p.base, "https", "http", 1)
	}
	p.client = &auth.Client{
		Client: &http.Client{
			Transport: &guard{Registry: r, next: p.transport},
			CheckRedirect: func(_ *http.Request, via []*http.Request) error {
				if len(via) > maxRedirects {
					return terminal("the registry redirects too often")
				}
				return nil
			},
		},
		Cache:      auth.NewCache(),
		Credential: auth.StaticCredential(reference.Registry, credential),
	}
	p.client.SetUserAgent("espalier")
	return p
}

// manifest returns a manifest, and its digest. name is a tag or a digest.
func (p *puller) manifest(ctx context.Context, name string) (*ocispec.Manifest, digest.Digest, error) {
	text, err := p.get(ctx, "/manifests/"+name, manifestType, maxManifest)
	if err != nil {
		return nil, "", err
	}
	sum := digest.FromBytes(text)
	if strings.Contains(name, ":") && sum.String() != name {
		return nil, "", terminal("the registry returns a manifest with another digest: %s", sum)
	}
	manifest := &ocispec.Manifest{}
	if json.Unmarshal(text, manifest) != nil {
		return nil, "", terminal("the manifest is not valid JSON")
	}
	return manifest, sum, nil
}

// layerOf returns the layer that has the files.
func layerOf(manifest *ocispec.Manifest, mediaTypes []string) (ocispec.Descriptor, error) {
	others := func(l ocispec.Descriptor) bool { return !slices.Contains(mediaTypes, l.MediaType) }
	layers := slices.DeleteFunc(slices.Clone(manifest.Layers), others)
	if len(layers) != 1 {
		return ocispec.Descriptor{}, terminal("the manifest has %d layers of the type %s, want 1", len(layers),
			strings.Join(mediaTypes, " or "))
	}
	return layers[0], nil
}

// blob returns what has the digest of a descriptor.
func (p *puller) blob(ctx context.Context, of ocispec.Descriptor, limit int64) ([]byte, error) {
	if of.Digest.Validate() != nil || of.Digest.Algorithm() != digest.SHA256 {
		return nil, terminal("the manifest has a digest that is not of sha256")
	}
	content, err := p.get(ctx, "/blobs/"+of.Digest.String(), "*/*", limit)
	if err == nil && digest.FromBytes(content) != of.Digest {
		err = terminal("the registry returns a blob with another digest than %s", of.Digest)
	}
	return content, err
}

// get returns the body of an answer, which is bounded.
func (p *puller) get(ctx context.Context, path, accept string, limit int64) ([]byte, error) {
	ctx = auth.AppendRepositoryScope(ctx, p.reference, auth.ActionPull)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, terminal("it is not part of a URL")
	}
	request.Header.Set("Accept", accept)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, answered(response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil {
		// The connection is closed when the time is over, which can look like the end of the body.
		err = ctx.Err()
	}
	switch {
	case err != nil:
		return nil, failed(&url.Error{Op: "Get", Err: err})
	case int64(len(body)) > limit:
		return nil, terminal("the registry returns more than %d bytes", limit)
	}
	return body, nil
}

// failed returns the error for a request without an answer. Its text has nothing of err, which may have a port or a
// time.
func failed(err error) error {
	if refused, ok := errors.AsType[*terminalError](err); ok {
		return refused
	}
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return answered(response.StatusCode)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return waiting(err, "the certificate of the registry is not trusted")
	}
	_, isNetwork := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return waiting(err, "the registry does not answer in time")
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return answered(http.StatusUnauthorized)
	case isNetwork:
		return waiting(err, "the registry cannot be reached")
	}
	return terminal("the registry asks for an authentication that is refused")
}

// answered returns the error for the status of an answer.
func answered(status int) error {
	switch {
	case status == http.StatusNotFound:
		return waiting(nil, "it does not exist in the registry")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errors.New("the registry denies access: name a pull secret whose credentials may read it")
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return waiting(nil, "the registry is not available: it answers with status %d", status)
	}
	return terminal("the registry answers with status %d", status)
}
