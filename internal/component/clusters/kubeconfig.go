package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/internal/document"
)

// maxKubeConfig is how large a kubeconfig may be, in bytes. No Secret holds more.
const maxKubeConfig = 1 << 20

// load reads a kubeconfig. Its errors quote nothing of it.
func load(kubeconfig []byte) (parsed *clientcmdapi.Config, err error) {
	defer func() {
		if recover() != nil {
			err = errUnreadable
		}
	}()
	if len(kubeconfig) > maxKubeConfig {
		return nil, fmt.Errorf("is larger than %d bytes", maxKubeConfig)
	}
	if err := document.Check(kubeconfig); errors.Is(err, document.ErrTooLarge) {
		return nil, err
	} else if err != nil {
		return nil, errUnreadable
	}
	if parsed, err = clientcmd.Load(kubeconfig); err != nil {
		// The cause may quote what it could not read.
		return nil, errUnreadable
	}
	return parsed, nil
}

var errUnreadable = errors.New("cannot be parsed")

// parse makes a config of the current context of a kubeconfig. It copies single fields, so that no other field has an
// effect: the author of a kubeconfig must not be able to run programs next to the operator, or to read its files. An
// error may name the fields that are used, but never shows their values.
func parse(kubeconfig []byte) (*rest.Config, error) {
	parsed, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	cluster, user, err := selected(parsed)
	if err != nil {
		return nil, err
	}
	if err := checkAllowed(cluster, user); err != nil {
		return nil, err
	}
	server, err := serverOf(cluster, user)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:               server.String(),
		DisableCompression: cluster.DisableCompression,
		BearerToken:        user.Token,
		Username:           user.Username,
		Password:           user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate,
			UID:      user.ImpersonateUID,
			Groups:   user.ImpersonateGroups,
			Extra:    user.ImpersonateUserExtra,
		},
	}
	if server.Scheme == "https" {
		config.TLSClientConfig = rest.TLSClientConfig{
			Insecure:   cluster.InsecureSkipTLSVerify,
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		}
	}
	// With a proxy function, client-go makes a transport for this config alone. Others are kept in a cache of the
	// process and shared by all configs that have the same certificates, so that their connections could not be closed.
	config.Proxy = http.ProxyFromEnvironment
	if cluster.ProxyURL != "" {
		proxy, err := address("cluster.proxy-url", cluster.ProxyURL, "http", "https", "socks5")
		if err != nil {
			return nil, err
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		// The cause does not quote a key or a certificate.
		return nil, fmt.Errorf("the certificates or the key cannot be used: %w", err)
	}
	return config, nil
}

// serverOf returns the address of the API server, if the credentials of the user may be sent there.
func serverOf(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (*url.URL, error) {
	server, err := address("cluster.server", cluster.Server, "https", "http")
	if err != nil {
		return nil, err
	}
	if server.User != nil {
		return nil, errors.New("cluster.server must not contain credentials")
	}
	if server.Scheme == "http" && authenticates(user) {
		return nil, errors.New("cluster.server must be an https URL, " +
			"or the credentials of the user could be read on the way")
	}
	if (len(user.ClientCertificateData) > 0) != (len(user.ClientKeyData) > 0) {
		// The API server would otherwise see somebody anonymous.
		return nil, errors.New("user.client-certificate-data and user.client-key-data must be given together")
	}
	server.RawQuery, server.Fragment = "", ""
	return server, nil
}

// selected returns the cluster and the user of the current context. A context without a user is anonymous.
func selected(parsed *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if parsed.CurrentContext == "" {
		return nil, nil, errors.New("has no current-context")
	}
	current := parsed.Contexts[parsed.CurrentContext]
	if current == nil {
		return nil, nil, errors.New("current-context is not the name of a context")
	}
	cluster := parsed.Clusters[current.Cluster]
	if cluster == nil {
		return nil, nil, errors.New("context.cluster is not the name of a cluster")
	}
	user := &clientcmdapi.AuthInfo{}
	if current.AuthInfo != "" {
		if user = parsed.AuthInfos[current.AuthInfo]; user == nil {
			return nil, nil, errors.New("context.user is not the name of a user")
		}
	}
	return cluster, user, nil
}

// checkAllowed returns an error that names all fields that are not allowed.
func checkAllowed(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	var refused []string
	for _, field := range []struct {
		used   bool
		reason string
	}{
		{user.Exec != nil, "user.exec would run a program next to the operator, use token or client-certificate-data"},
		{user.AuthProvider != nil, "user.auth-provider is not supported, use token or client-certificate-data"},
		{user.TokenFile != "", "user.tokenFile would read a file of the operator, use token"},
		{user.ClientCertificate != "",
			"user.client-certificate would read a file of the operator, use client-certificate-data"},
		{user.ClientKey != "", "user.client-key would read a file of the operator, use client-key-data"},
		{cluster.CertificateAuthority != "",
			"cluster.certificate-authority would read a file of the operator, use certificate-authority-data"},
	} {
		if field.used {
			refused = append(refused, field.reason)
		}
	}
	if len(refused) > 0 {
		return errors.New("is not allowed: " + strings.Join(refused, "; "))
	}
	return nil
}

// authenticates reports whether the user sends credentials.
func authenticates(user *clientcmdapi.AuthInfo) bool {
	return user.Token != "" || user.Username != "" || user.Password != "" ||
		len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0
}

// address parses a URL without quoting it in the error.
func address(field, value string, schemes ...string) (*url.URL, error) {
	parsed, err := url.Parse(value)
	if err == nil && parsed.Host != "" && slices.Contains(schemes, parsed.Scheme) {
		return parsed, nil
	}
	return nil, fmt.Errorf("%s must be a URL that begins with %s://", field, strings.Join(schemes, ":// or "))
}
