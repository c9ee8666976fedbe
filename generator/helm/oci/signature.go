package oci

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

// The format of signatures is that of cosign with a key, without bundles.
const (
	signatureMediaType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signatureType       = "cosign container image signature"
	maxSignatures       = 100
	maxPayload          = 64 << 10
)

func parseKey(text []byte) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not a public key")
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is not an ECDSA key with the curve P-256")
	}
	return key, nil
}

// verify returns an error unless one of the keys has signed the digest of a manifest.
func (p *puller) verify(ctx context.Context, signed digest.Digest, keys []*ecdsa.PublicKey) error {
	manifest, _, err := p.manifest(ctx, "sha256-"+signed.Encoded()+".sig")
	if err != nil {
		return &causedError{"the signature for " + signed.String() + ": " + err.Error(), err}
	}
	for _, layer := range manifest.Layers[:min(len(manifest.Layers), maxSignatures)] {
		if layer.MediaType != signatureMediaType || !isSignature(layer.Digest, layer.Annotations, keys) {
			continue
		}
		payload, err := p.blob(ctx, layer, maxPayload)
		if err != nil {
			return err
		}
		if signs(payload, signed) {
			return nil
		}
	}
	return terminal("none of the operator's keys has signed %s", signed)
}

// isSignature reports whether the annotations have a signature of the payload with this digest.
func isSignature(payload digest.Digest, annotations map[string]string, keys []*ecdsa.PublicKey) bool {
	sum, err := hex.DecodeString(strings.TrimPrefix(payload.String(), "sha256:"))
	if err != nil || len(sum) != 32 {
		return false
	}
	signature, err := base64.StdEncoding.DecodeString(annotations[signatureAnnotation])
	return err == nil && slices.ContainsFunc(keys, func(key *ecdsa.PublicKey) bool {
		return ecdsa.VerifyASN1(key, sum, signature)
	})
}

// signs reports whether a payload is about the manifest with this digest.
func signs(payload []byte, manifest digest.Digest) bool {
	var signed struct {
		Critical struct {
			Type  string `json:"type"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	return json.Unmarshal(payload, &signed) == nil && signed.Critical.Type == signatureType &&
		signed.Critical.Image.Digest == manifest.String()
}
