package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// webhooks calls webhooks in process. It is what the libraries ask for an address, and for a client.
type webhooks struct {
	// find returns the handler at an address; nil if nothing listens there.
	find func(address string) http.Handler
}

var (
	_ webhook.ServiceResolver            = webhooks{}
	_ webhook.AuthenticationInfoResolver = webhooks{}
)

// wrap implements [webhook.AuthenticationInfoResolverWrapper].
func (w webhooks) wrap(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return w
}

// ResolveEndpoint implements [webhook.ServiceResolver]. The address is the name of the service.
func (w webhooks) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: serviceAddress(name, namespace, int(port))}, nil
}

func serviceAddress(name, namespace string, port int) string {
	return net.JoinHostPort(name+"."+namespace+".svc", strconv.Itoa(port))
}

// ClientConfigFor implements [webhook.AuthenticationInfoResolver].
func (w webhooks) ClientConfigFor(address string) (*rest.Config, error) {
	return &rest.Config{WrapTransport: func(base http.RoundTripper) http.RoundTripper {
		return webhookTransport{base, w.find}
	}}, nil
}

// ClientConfigForService implements [webhook.AuthenticationInfoResolver].
func (w webhooks) ClientConfigForService(name, namespace string, port int) (*rest.Config, error) {
	return w.ClientConfigFor(serviceAddress(name, namespace, port))
}

// webhookTransport calls the handler at the address of a request. Of the transport that it stands for it takes the
// certificates that are trusted: there must be some, as no webhook has a certificate that all systems trust.
type webhookTransport struct {
	base http.RoundTripper
	find func(address string) http.Handler
}

var (
	errRefused = errors.New("connect: connection refused")
	errTrust   = errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")
)

// RoundTrip implements [http.RoundTripper].
func (t webhookTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	address := request.URL.Host
	if request.URL.Port() == "" {
		address = net.JoinHostPort(address, "443")
	}
	var handler http.Handler
	if t.find != nil {
		handler = t.find(address)
	}
	if handler == nil {
		closeBody(request)
		return nil, fmt.Errorf("dial tcp %s: %w", address, errRefused)
	}
	if trust, err := utilnet.TLSClientConfig(t.base); err != nil || trust == nil || trust.RootCAs == nil {
		closeBody(request)
		return nil, errTrust
	}
	return RoundTripper(handler).RoundTrip(request)
}
