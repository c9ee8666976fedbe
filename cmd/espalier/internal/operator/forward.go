package operator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward forwards a free port of 127.0.0.1 to a port of a pod until the context ends. It returns the port, and what
// gets the error with which the forwarding ends: nil if the context did.
func Forward(
	ctx context.Context, config *rest.Config, pod *corev1.Pod, port int,
) (local uint16, ended <-chan error, err error) {
	dialer, err := dialerOf(config, pod)
	if err != nil {
		return 0, nil, err
	}
	ready := make(chan struct{})
	var problems strings.Builder
	forwarder, err := portforward.NewOnAddressesForStreaming(
		dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, &problems)
	if err != nil {
		return 0, nil, err
	}
	result := make(chan error, 1)
	go func() {
		err := forwarder.ForwardPorts()
		if ctx.Err() != nil {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("the connection to the pod %s has ended: %w", pod.Name, portforward.ErrLostConnectionToPod)
		}
		result <- err
	}()
	select {
	case <-ctx.Done():
		// Nobody but the process ends a connection that is not made yet.
		return 0, nil, context.Cause(ctx)
	case err := <-result:
		return 0, nil, fmt.Errorf("unable to forward a port to the pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return 0, nil, err
	}
	return ports[0].Local, result, nil
}

// dialerOf connects as kubectl does: by a WebSocket, and by SPDY if that does not work.
func dialerOf(config *rest.Config, pod *corev1.Pod) (httpstream.Dialer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	at := client.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	first, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
	if err != nil {
		return nil, err
	}
	second := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	return portforward.NewFallbackDialerForStreaming(first, second, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// Transport returns a transport to an operator that says who the user of a kubeconfig is by its bearer token, and by
// nothing else: a password and a client certificate are for the API server.
func Transport(config *rest.Config, base http.RoundTripper) (http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.Username, config.Password = "", ""
	if config.Impersonate.UserName != "" {
		const why = "the page asks whose token it gets, so it cannot be opened as %q: use a token of that user"
		return nil, fmt.Errorf(why, config.Impersonate.UserName)
	}
	return rest.HTTPWrappersForConfig(config, base)
}

// IsURL reports whether a target is the URL of a page.
func IsURL(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
