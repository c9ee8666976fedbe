package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/operator"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/proxy"
	"github.com/espalier-dev/espalier/internal/loopback"
)

// pageOptions are the flags of the command page.
type pageOptions struct {
	cluster *genericclioptions.ConfigFlags
	// port is where the proxy listens; 0 is a free port.
	port int
	// operatorPort, path and plainHTTP say where the page is in a pod, and ca and insecure whose certificate that of a
	// URL has.
	operatorPort, path, ca string
	plainHTTP, insecure    bool
	serviceAccount         string
}

func newPage() *cobra.Command {
	o := &pageOptions{cluster: genericclioptions.NewConfigFlags(true)}
	c := &cobra.Command{
		Use:   "page TARGET",
		Short: "Open the live page of an operator for a browser",
		Long: `Open the live page of an operator for a browser, until interrupted.

TARGET is deployment/NAME, statefulset/NAME, pod/NAME, or the URL of the page. Of
several pods the one that leads is asked.

The page wants a bearer token, which a browser does not send. So the command
serves the page on 127.0.0.1, and adds the token of the user of the kubeconfig:
what you see is what that user may see. It prints the address to open, which has
a key, so that nobody else on this machine acts as you.

A kubeconfig with a client certificate has no token. Then --service-account takes
one of a ServiceAccount for which you may create tokens.`,
		Example: `  espalier page deployment/shop-operator -n shop-system

  # the page of an operator that runs on this machine
  espalier page https://127.0.0.1:8443/espalier/ --operator-ca ca.crt --token "$TOKEN"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				const why = "one TARGET is needed, not %d: deployment/NAME, statefulset/NAME, pod/NAME or a URL"
				return fmt.Errorf(why, len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], c.OutOrStdout()) },
	}
	flags := c.Flags()
	o.cluster.AddFlags(flags)
	flags.IntVar(&o.port, "port", 0, "the port of 127.0.0.1 where the page is served; 0 takes a free one")
	flags.StringVar(&o.operatorPort, "operator-port", "8443",
		"the port of the pod that has the page, by number or name")
	flags.StringVar(&o.path, "operator-path", "/espalier/", "the path of the page in the pod")
	flags.BoolVar(&o.plainHTTP, "operator-plain-http", false, "the port of the pod serves HTTP, not HTTPS")
	flags.StringVar(&o.ca, "operator-ca", "", "a file with the certificates of who has signed that of the URL")
	flags.BoolVar(&o.insecure, "operator-insecure", false,
		"do not check the certificate of the URL; whoever answers there gets your token")
	flags.StringVar(&o.serviceAccount, "service-account", "",
		"be a ServiceAccount, given as NAME or NAMESPACE/NAME, by a token of an hour")
	return c
}

func (o *pageOptions) run(ctx context.Context, target string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return err
	}
	page, base, ended, err := o.reach(ctx, config, target)
	if err != nil {
		return err
	}
	viewer, err := o.identify(ctx, config)
	if err != nil {
		return err
	}
	transport, err := operator.Transport(viewer, base)
	if err != nil {
		return err
	}
	if err := try(ctx, page, transport); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return err
	}
	handler := proxy.New(listener.Addr(), page, transport)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(out, "The page is at %s until Ctrl-C.\n", handler.Open())
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, server.Close(), unlessClosed(<-served))
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// identify returns the configuration of the user who looks at the page.
func (o *pageOptions) identify(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	if o.serviceAccount == "" {
		return config, nil
	}
	namespace, name, found := strings.Cut(o.serviceAccount, "/")
	if !found {
		var err error
		if name = namespace; name != "" {
			namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace()
		}
		if err != nil {
			return nil, err
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{}
	request.Spec.ExpirationSeconds = new(int64(3600))
	request, err = client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("unable to create a token of the ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{}
	config.BearerToken, config.BearerTokenFile = request.Status.Token, ""
	config.ExecProvider, config.AuthProvider = nil, nil
	return config, nil
}

// reach returns where the page is, what connects to it, and what gets the error that ends the connection.
func (o *pageOptions) reach(
	ctx context.Context, config *rest.Config, target string,
) (page *url.URL, base *http.Transport, ended <-chan error, err error) {
	base = http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if operator.IsURL(target) {
		if page, err = url.Parse(target); err != nil {
			return nil, nil, nil, err
		}
		if page.Scheme == "http" && !loopback.IsHost(page.Host) {
			const why = "%s is not encrypted, and your token would be sent there: use https"
			return nil, nil, nil, fmt.Errorf(why, target)
		}
		page.Path = strings.TrimSuffix(page.Path, "/") + "/"
		base.TLSClientConfig.InsecureSkipVerify = o.insecure
		if base.TLSClientConfig.RootCAs, err = o.authorities(); err != nil {
			return nil, nil, nil, err
		}
		return page, base, nil, nil
	}
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	pod, err := operator.Pod(ctx, client, namespace, target)
	if err != nil {
		return nil, nil, nil, err
	}
	port, err := operator.Port(pod, o.operatorPort)
	if err != nil {
		return nil, nil, nil, err
	}
	local, ended, err := operator.Forward(ctx, config, pod, port)
	if err != nil {
		return nil, nil, nil, err
	}
	page = &url.URL{
		Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", local), Path: "/" + strings.Trim(o.path, "/") + "/",
	}
	if o.plainHTTP {
		page.Scheme = "http"
	}
	// The API server leads the connection to this pod, whose certificate is one that it has made for itself.
	base.TLSClientConfig.InsecureSkipVerify = true
	return page, base, ended, nil
}

// authorities returns who may sign the certificate of a page with a URL; nil for those of the system.
func (o *pageOptions) authorities() (*x509.CertPool, error) {
	if o.ca == "" {
		return nil, nil
	}
	content, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate", o.ca)
	}
	return pool, nil
}

// try looks whether the page is there and may be seen.
func try(ctx context.Context, page *url.URL, transport http.RoundTripper) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the operator does not answer: %w", err)
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized:
		return errors.New("the operator does not know who you are: the user of the kubeconfig has no bearer token, " +
			"or one that has expired; pass --token or --service-account")
	case http.StatusForbidden:
		return errors.New("you may not see the page: a role must allow its path to you, as a nonResourceURL, " +
			"with the verb get")
	case http.StatusNotFound:
		return fmt.Errorf("there is no page at %s: --operator-path says where the operator has mounted it", page.Path)
	}
	return fmt.Errorf("the operator answers with %s", response.Status)
}
