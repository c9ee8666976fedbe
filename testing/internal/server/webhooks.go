package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// hookCaller is what the libraries ask how a webhook is called.
type hookCaller interface {
	webhook.ServiceResolver
	// wrap is a [webhook.AuthenticationInfoResolverWrapper].
	wrap(base webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver
}

// networkWebhooks calls webhooks over the network. A Service of type ExternalName stands for what its name does, at the
// port of the reference. Nothing listens at the address of another Service, because no containers run.
type networkWebhooks struct{ services corev1client.ServicesGetter }

var _ hookCaller = networkWebhooks{}

// resolveTime is how long the server may take to find a Service.
const resolveTime = 10 * time.Second

// ResolveEndpoint implements [webhook.ServiceResolver].
func (w networkWebhooks) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	service, err := w.services.Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the Service of a webhook: %w", err)
	}
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		return nil, fmt.Errorf("nothing listens at Service %s/%s, because the cluster runs no containers: "+
			"give the webhook a url instead, or the Service the type ExternalName", namespace, name)
	}
	host := net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port)))
	return &url.URL{Scheme: "https", Host: host}, nil
}

// wrap implements [hookCaller].
func (networkWebhooks) wrap(base webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return base
}

// webhooks calls webhooks in process. It is what the libraries ask for an address, and for a client.
type webhooks struct {
	// find returns the handler at an address; nil if nothing listens there.
	find func(address string) http.Handler
}

var (
	_ hookCaller                         = webhooks{}
	_ webhook.AuthenticationInfoResolver = webhooks{}
)

// wrap implements [hookCaller].
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
