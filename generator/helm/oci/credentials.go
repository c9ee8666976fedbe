package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/espalier-dev/espalier/generator"
)

// credentialOf reads the pull secret, with the identity of the component. Errors have nothing of what is in it.
func credentialOf(ctx context.Context, a *artifact) (auth.Credential, error) {
	if a.secret == "" {
		return auth.EmptyCredential, nil
	}
	local, err := generator.LocalClientFromContext(ctx)
	if err != nil {
		return auth.EmptyCredential, err
	}
	secret := &corev1.Secret{}
	err = local.Get(ctx, types.NamespacedName{Namespace: a.component.GetNamespace(), Name: a.secret}, secret)
	switch {
	case apierrs.IsNotFound(err):
		return auth.EmptyCredential, waiting(err, "the pull secret %q does not exist", a.secret)
	case err != nil:
		return auth.EmptyCredential, fmt.Errorf("unable to read the pull secret %q: %w", a.secret, err)
	case secret.Type != corev1.SecretTypeDockerConfigJson:
		return auth.EmptyCredential, fmt.Errorf("the pull secret %q is not of the type %s", a.secret,
			corev1.SecretTypeDockerConfigJson)
	}
	credential, ok := findCredential(secret.Data[corev1.DockerConfigJsonKey], a.reference)
	if !ok {
		return auth.EmptyCredential, fmt.Errorf("the pull secret %q has no credentials for %s", a.secret,
			a.reference.Registry)
	}
	return credential, nil
}

// dockerHub is how Docker names the registry registry-1.docker.io.
const dockerHub = "index.docker.io"

// findCredential returns the entry for the longest part of host/repository. An entry may be a URL.
func findCredential(config []byte, reference registry.Reference) (auth.Credential, bool) {
	var parsed struct {
		Auths map[string]struct {
			Auth, Username, Password, IdentityToken, RegistryToken string
		}
	}
	if json.Unmarshal(config, &parsed) != nil {
		return auth.EmptyCredential, false
	}
	longest, found := -1, auth.EmptyCredential
	for key, entry := range parsed.Auths {
		key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		key = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(key, "/"), "/v1"), "/v2")
		if key == dockerHub {
			key = "registry-1.docker.io"
		}
		whole := reference.Registry + "/" + reference.Repository + "/"
		if len(key) <= longest || !strings.HasPrefix(whole, key+"/") {
			continue
		}
		credential := auth.Credential{Username: entry.Username, Password: entry.Password,
			RefreshToken: entry.IdentityToken, AccessToken: entry.RegistryToken}
		if pair, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && entry.Auth != "" {
			credential.Username, credential.Password, _ = strings.Cut(string(pair), ":")
		}
		longest, found = len(key), credential
	}
	return found, found != auth.EmptyCredential
}
