package cluster

import (
	"errors"
	"fmt"
	"net"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User is somebody who may connect to a cluster, and the groups that they are in.
type User = envtest.User

// AuthenticatedUser is a user with a certificate.
type AuthenticatedUser struct {
	config     *rest.Config
	kubeConfig []byte
}

// Config returns the configuration of clients of the user, as a copy.
func (u *AuthenticatedUser) Config() *rest.Config { return rest.CopyConfig(u.config) }

// KubeConfig returns a kubeconfig of the user. It has the key of the user.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) { return u.kubeConfig, nil }

// AddUser lets a user connect to the cluster that runs. The user may do what roles allow that are bound to the name or
// a group; members of "system:masters" may do everything. The configuration is that of base with what leads to the
// cluster; base may be nil.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Config == nil || len(e.ends) == 0 {
		return nil, errors.New("add a user: the cluster does not run: call Start before")
	}
	return e.addUser(user, base, e.Config.Host)
}

// The limits of requests of a client, as in envtest: tests and development do not wait for the client.
const qps, burst = 1000, 2000

func (e *Environment) addUser(user User, base *rest.Config, host string) (*AuthenticatedUser, error) {
	if user.Name == "" {
		return nil, errors.New("add a user: the user has no name")
	}
	certificate, key, err := e.authority.client(user)
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", user.Name, err)
	}
	config := &rest.Config{QPS: qps, Burst: burst}
	if base != nil {
		config = rest.CopyConfig(base)
	}
	config.Host = host
	config.TLSClientConfig = rest.TLSClientConfig{CAData: e.authority.bundle, CertData: certificate, KeyData: key}
	kubeConfig, err := clientcmd.Write(kubeConfigOf(user.Name, config))
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for user %s: %w", user.Name, err)
	}
	return &AuthenticatedUser{config, append([]byte(mark), kubeConfig...)}, nil
}

// hostOf returns the address of an API server that listens at an address.
func hostOf(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	return "https://" + address.String()
}

// name is what the cluster and the context are called in a kubeconfig.
const name = "espalier"

func kubeConfigOf(user string, config *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			user: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}
}
