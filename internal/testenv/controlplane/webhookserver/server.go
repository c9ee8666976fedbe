// Package webhookserver serves admission webhooks to an API server on the same machine, for tests and demos: on the
// loopback interface, with a self-signed certificate, and with the configurations that register the webhooks.
//
//	server, err := webhookserver.New()
//	mgr, err := ctrl.NewManager(config, ctrl.Options{WebhookServer: server})
//	mgr.GetWebhookServer().Register("/tenants", webhook)
//	err = c.Create(ctx, server.Mutating("tenants", webhookserver.Hook{Path: "/tenants", Rules: rules}))
//
// The API server takes a moment to notice a configuration: until then it does not call the webhook.
package webhookserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const host = "127.0.0.1"

// Server is the webhook server of a manager, at a free port. It makes the configurations by which an API server calls
// it.
type Server struct {
	webhook.Server

	address  string
	caBundle []byte
}

// New returns a server for a port that is free now. It listens once the manager starts.
func New() (*Server, error) {
	bundle, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("unable to make a certificate for webhooks: %w", err)
	}
	certificate, err := tls.X509KeyPair(bundle, key)
	if err != nil {
		return nil, fmt.Errorf("unable to use the certificate for webhooks: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("unable to find a port for webhooks: %w", err)
	}
	return &Server{
		Server: webhook.NewServer(webhook.Options{
			Host: host,
			Port: port,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) {
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
			}},
		}),
		address:  net.JoinHostPort(host, strconv.Itoa(port)),
		caBundle: bundle,
	}, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// Hook registers one webhook.
type Hook struct {
	// Path is where the server serves it, with a leading slash. Required.
	Path string
	// Rules say for which requests it is called. Required.
	Rules []admissionregistrationv1.RuleWithOperations
	// Namespaces are those whose objects it is called for. Default: all objects of the cluster.
	Namespaces []string
}

// Mutating returns a configuration that registers hooks which may change objects. A request fails if a hook cannot be
// called.
func (s *Server) Mutating(name string, hooks ...Hook) *admissionregistrationv1.MutatingWebhookConfiguration {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, hook := range hooks {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    hook.name(name),
			ClientConfig:            s.clientConfig(hook.Path),
			Rules:                   hook.Rules,
			NamespaceSelector:       hook.namespaceSelector(),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

// Validating is [Server.Mutating] for hooks that see objects as they will be stored, and may not change them.
func (s *Server) Validating(name string, hooks ...Hook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, hook := range hooks {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:                    hook.name(name),
			ClientConfig:            s.clientConfig(hook.Path),
			Rules:                   hook.Rules,
			NamespaceSelector:       hook.namespaceSelector(),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

func (s *Server) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: new("https://" + s.address + path), CABundle: s.caBundle}
}

// name returns the name of the hook in a configuration, which has to be a domain name of three parts.
func (h Hook) name(configuration string) string {
	path := strings.ReplaceAll(strings.Trim(h.Path, "/"), "/", "-")
	return strings.Trim(path+"."+configuration, ".") + ".espalier.dev"
}

func (h Hook) namespaceSelector() *metav1.LabelSelector {
	if len(h.Namespaces) == 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: h.Namespaces,
	}}}
}
