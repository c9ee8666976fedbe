package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	"github.com/espalier-dev/espalier/internal/loopback"
)

// reachOptions say where the page of an operator is, and who looks at it.
type reachOptions struct {
	cluster *genericclioptions.ConfigFlags
	// namespace is that of the operator; empty for the one of the kubeconfig.
	namespace string
	// operatorPort, path and plainHTTP say where the page is in a pod, and ca and insecure whose certificate that of a
	// URL has.
	operatorPort, path, ca string
	plainHTTP, insecure    bool
	serviceAccount         string
}

func newReachOptions() reachOptions {
	return reachOptions{cluster: genericclioptions.NewConfigFlags(true)}
}

func (o *reachOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.cluster.AddFlags(flags)
	flags.StringVar(&o.operatorPort, "operator-port", "8443",
		"the port of the pod that has the page, by number or name")
	flags.StringVar(&o.path, "operator-path", "/espalier/", "the path of the page in the pod")
	flags.BoolVar(&o.plainHTTP, "operator-plain-http", false, "the port of the pod serves HTTP, not HTTPS")
	flags.StringVar(&o.ca, "operator-ca", "", "a file with the certificates of who has signed that of the URL")
	flags.BoolVar(&o.insecure, "operator-insecure", false,
		"do not check the certificate of the URL; whoever answers there gets your token")
	flags.StringVar(&o.serviceAccount, "service-account", "",
		"be a ServiceAccount, given as NAME or NAMESPACE/NAME, by a token of an hour")
}

// connect returns where the page of a target is, a transport as the user who may see it, and what gets the error that
// ends the connection.
func (o *reachOptions) connect(
	ctx context.Context, target string,
) (page *url.URL, transport http.RoundTripper, ended <-chan error, err error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	page, base, ended, err := o.reach(ctx, config, target)
	if err != nil {
		return nil, nil, nil, err
	}
	viewer, err := o.identify(ctx, config)
	if err != nil {
		return nil, nil, nil, err
	}
	if transport, err = operator.Transport(viewer, base); err != nil {
		return nil, nil, nil, err
	}
	return page, transport, ended, try(ctx, page, transport)
}

// identify returns the configuration of the user who looks at the page.
func (o *reachOptions) identify(ctx context.Context, config *rest.Config) (*rest.Config, error) {
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
func (o *reachOptions) reach(
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
	namespace := o.namespace
	if namespace == "" {
		if namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, nil, nil, err
		}
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
func (o *reachOptions) authorities() (*x509.CertPool, error) {
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

// maxAnswerTime is how long an operator may take to answer.
const maxAnswerTime = 30 * time.Second

// try looks whether the page is there and may be seen.
func try(ctx context.Context, page *url.URL, transport http.RoundTripper) error {
	ctx, cancel := context.WithTimeout(ctx, maxAnswerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the operator does not answer: %w", err)
	}
	_ = response.Body.Close()
	return refusalOf(page, response)
}

// refusalOf returns the error that an answer of a page stands for, nil if it is none.
func refusalOf(page *url.URL, response *http.Response) error {
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
