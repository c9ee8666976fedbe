package clusters

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FreshClient makes a client like Client that opens a connection for each request and closes it afterwards. A load
// balancer chooses an API server for each connection, so its requests reach all of them in the end. It must not be kept
// for long: certificates that are renewed do not reach it.
func (c *Cluster) FreshClient() (client.Client, error) {
	if c.Config.Transport != nil {
		// A transport of the caller's cannot be made again.
		return c.Client, nil
	}
	tlsConfig, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("could not read the certificates: %w", err)
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig:     tlsConfig,
		DisableKeepAlives:   true,
		// With HTTP/2, requests share a connection.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if c.Config.Dial != nil {
		transport.DialContext = c.Config.Dial
	}
	if c.Config.Proxy != nil {
		transport.Proxy = c.Config.Proxy
	}
	if tlsConfig != nil {
		tlsConfig.NextProtos = []string{"http/1.1"}
	}
	wrapped, err := rest.HTTPWrappersForConfig(c.Config, transport)
	if err != nil {
		return nil, fmt.Errorf("could not make a transport: %w", err)
	}
	fresh, err := client.New(c.Config, client.Options{
		HTTPClient: &http.Client{Transport: wrapped},
		Scheme:     c.Client.Scheme(),
		Mapper:     c.Client.RESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("could not make a client: %w", err)
	}
	return fresh, nil
}

const dialTimeout = 10 * time.Second
