// Package oci fetches charts and kustomizations from OCI registries, for a [generator.SourceGenerator].
//
//	source, err := oci.NewSource(func(s *Shop) oci.Reference { return s.Spec.Chart }, oci.Options{
//		Registries: []oci.Registry{{Host: "ghcr.io", BlobHosts: []string{"pkg-containers.githubusercontent.com"}}},
//	})
//	made := &generator.SourceGenerator{
//		Source: source,
//		Parse: func(files fs.FS) (generator.Generator, error) {
//			return helm.NewGenerator(files, "", helm.Options{})
//		},
//	}
//
// Whoever may write a resource says where the operator connects to, and what it deploys. Therefore only registries that
// the operator lists are reached, and the content is pinned by its digest or signed by a key of the operator.
//
// The package does not need the Helm SDK.
package oci

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

// Reference says what a component is made from. A spec can contain it.
type Reference struct {
	// URL is oci://host/repository@sha256:digest, where the digest is that of the manifest. A tag before the digest is
	// ignored. If the operator has keys, oci://host/repository:tag is allowed too. Such a tag is resolved when the
	// content is fetched, see [generator.Source]: use a digest to decide when a component changes.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^oci://[^@/?#]+/[^?#]+$`
	URL string `json:"url"`
	// PullSecretName is the name of a Secret of the type kubernetes.io/dockerconfigjson in the namespace of the
	// resource. It is read with the identity of the component when the content is fetched. Default: anonymous.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PullSecretName string `json:"pullSecretName,omitempty"`
}

// Options of a [Source].
type Options struct {
	// Registries are those that content may be fetched from. Nothing else is reached. Required.
	Registries []Registry
	// Keys are public keys as PEM, as cosign writes them: ECDSA with the curve P-256. If there are any, all content
	// must be signed by one of them, also if it is pinned by its digest. The signature is the one that cosign stores in
	// the tag sha256-DIGEST.sig, without the bundle format. It covers the manifest, but not its tag or repository.
	// Default: none, so content must be pinned.
	Keys [][]byte
	// MediaTypes are those of the layer with the files, of which a manifest has one. Default: [ChartMediaType]. For a
	// kustomization, use [FluxMediaType] and [TarMediaType].
	MediaTypes []string
	// MaxBytes bounds the archive, and also the files in it. A fetch takes up to five times as much memory. If it is
	// not greater than 0: 32 MiB.
	MaxBytes int64
	// Timeout bounds a fetch with all its requests. If it is not greater than 0: a minute.
	Timeout time.Duration
}

// Media types of a layer that is a packed folder (.tar.gz).
const (
	// ChartMediaType is that of a Helm chart, as helm push writes it. The folder of the chart is the root of the files,
	// so a generator leaves out what .helmignore names, as helm package does.
	ChartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// FluxMediaType is that of a folder, as flux push artifact writes it.
	FluxMediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
	// TarMediaType is that of a layer of an image.
	TarMediaType = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Registry is a host that content may be fetched from.
//
// It is reached by HTTPS, at public addresses, and without a proxy. The addresses of metadata services, and link-local
// and multicast addresses are always refused. Addresses are checked after names are resolved.
type Registry struct {
	// Host is the name, with its port if URLs have one. It is compared with that of a URL as it is. Required.
	Host string
	// TokenHosts are other hosts that may give tokens for this one, such as auth.docker.io. They get the credentials.
	TokenHosts []string
	// BlobHosts are other hosts that this one may redirect to. They get no credentials.
	BlobHosts []string
	// Internal allows private and loopback addresses for all of these hosts.
	Internal bool
	// PlainHTTP uses HTTP for Host, and allows it for the others. Then anybody on the way reads the credentials.
	PlainHTTP bool
	// RootCAs have signed the certificates of the hosts. Default: those of the system.
	RootCAs *x509.CertPool
}

// Source is a [generator.Source] for OCI registries. It is safe for concurrent use, and keeps nothing in memory.
type Source struct {
	options   Options
	keys      []*ecdsa.PublicKey
	reference func(component client.Object) (Reference, error)
}

var _ generator.Source = (*Source)(nil)

const (
	defaultMaxBytes = 32 << 20
	defaultTimeout  = time.Minute
)

// NewSource returns a source. reference is called with the resource of a component, of the type T, and must only read
// it. The error names the option that is wrong.
func NewSource[T client.Object](reference func(component T) Reference, options Options) (*Source, error) {
	s := &Source{options: options}
	s.options.MaxBytes = cmp.Or(max(options.MaxBytes, 0), defaultMaxBytes)
	s.options.Timeout = cmp.Or(max(options.Timeout, 0), defaultTimeout)
	if len(options.MediaTypes) == 0 {
		s.options.MediaTypes = []string{ChartMediaType}
	}
	if reference == nil {
		return nil, errors.New("there is no function that returns the reference of a component")
	}
	if len(options.Registries) == 0 {
		return nil, errors.New("option Registries: it is required: nothing is reached that it does not list")
	}
	s.options.Registries = slices.Clone(options.Registries)
	for i := range options.Registries {
		if err := options.Registries[i].validate(); err != nil {
			return nil, fmt.Errorf("option Registries[%d]: %w", i, err)
		}
	}
	for i, key := range options.Keys {
		parsed, err := parseKey(key)
		if err != nil {
			return nil, fmt.Errorf("option Keys[%d]: %w", i, err)
		}
		s.keys = append(s.keys, parsed)
	}
	s.reference = func(component client.Object) (Reference, error) {
		if typed, ok := component.(T); ok {
			return reference(typed), nil
		}
		return Reference{}, fmt.Errorf("the resource is a %T, and the source is not for that", component)
	}
	return s, nil
}

// Reference returns the URL. With a pull secret, the resource is part of it, because only the identity of the component
// may say who can read that Secret.
func (s *Source) Reference(ctx context.Context) (string, error) {
	a, err := s.artifactOf(ctx)
	if err != nil {
		return "", err
	}
	if a.secret == "" {
		return a.String(), nil
	}
	return fmt.Sprintf("%s %s %s/%s %s", a, a.secret, a.component.GetNamespace(), a.component.GetName(),
		a.component.GetUID()), nil
}

// Fetch fetches the content. It makes one request for the manifest and one for the archive, two for a signature, and
// those for tokens.
func (s *Source) Fetch(ctx context.Context) (generator.Content, error) {
	a, err := s.artifactOf(ctx)
	if err != nil {
		return generator.Content{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	content, err := s.pull(bounded, a)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return generator.Content{}, fmt.Errorf("%s: %w", a, err)
	}
	return content, nil
}

func (s *Source) pull(ctx context.Context, a *artifact) (content generator.Content, err error) {
	credential, err := credentialOf(ctx, a)
	if err != nil {
		return content, err
	}
	p := a.registry.puller(a.reference, credential)
	defer p.transport.CloseIdleConnections()
	manifest, digest, err := p.manifest(ctx, a.reference.Reference)
	if err != nil {
		return content, err
	}
	if len(s.keys) > 0 {
		if err := p.verify(ctx, digest, s.keys); err != nil {
			return content, err
		}
	}
	layer, err := layerOf(manifest, s.options.MediaTypes)
	if err != nil {
		return content, err
	}
	archive, err := p.blob(ctx, layer, s.options.MaxBytes)
	if err != nil {
		return content, err
	}
	content.Digest = layer.Digest.String()
	content.Files, content.Size, err = unpack(archive, s.options.MaxBytes, layer.MediaType == ChartMediaType)
	if err != nil {
		err = terminal("the archive cannot be unpacked: %w", err)
	}
	return content, err
}
