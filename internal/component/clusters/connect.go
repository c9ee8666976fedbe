package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// connect makes the cluster of an identity. It makes no request.
func (p *Pool) connect(id string, identity Identity) (*Cluster, error) {
	var reachability *Reachability
	if len(identity.KubeConfig) > 0 {
		reachability = &Reachability{}
	}
	config, err := p.config(identity, reachability)
	if err != nil {
		return nil, err
	}
	scheme, err := p.scheme()
	if err != nil {
		return nil, fmt.Errorf("could not make a scheme: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("could not make an HTTP client: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("could not make a discovery client: %w", err)
	}
	types := &resettable{config: config, http: httpClient, scheme: scheme, discovery: discoverer}
	if err := types.reset(); err != nil {
		return nil, err
	}
	made := &Cluster{
		ID: id, Config: config, HTTPClient: httpClient, Client: liveClient{types.current.Load().client, types},
		Reachability: reachability, discovery: discoverer, dropped: func() {},
	}
	if reachability != nil {
		reachability.probe = discoverer.RESTClient()
		// All users of the operator's own cluster share a transport, so that one is left alone.
		made.dropped = func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) }
	}
	return made, nil
}

// config returns the configuration of the requests of an identity. The reachability is nil for the operator's cluster.
func (p *Pool) config(identity Identity, reachability *Reachability) (*rest.Config, error) {
	var config *rest.Config
	switch {
	case len(identity.KubeConfig) > 0:
		var err error
		if config, err = parse(identity.KubeConfig); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		if p.Home != nil {
			config.UserAgent = p.Home.UserAgent
		}
		config.Timeout = p.Timeout
	case p.Home != nil:
		config = rest.CopyConfig(p.Home)
	default:
		return nil, errors.New("there is neither a kubeconfig, nor a config of the operator's own cluster")
	}
	if identity.User != "" {
		as := config.Impersonate
		if as.UserName != "" || as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0 {
			return nil, errors.New("the client already impersonates a user, and cannot impersonate another one")
		}
		config.Impersonate = rest.ImpersonationConfig{UserName: identity.User, Groups: identity.Groups}
	}
	if config.QPS == 0 && config.RateLimiter == nil {
		// Zero means 5 a second.
		config.QPS = -1
	}
	config.Wrap(withDeadline(cmp.Or(max(config.Timeout, 0), requestTimeout)))
	// A timeout of the config would end watches, too.
	config.Timeout = 0
	if reachability != nil {
		config.Wrap(reachability.wrap)
	}
	if p.Wrap != nil {
		config.Wrap(p.Wrap)
	}
	return config, nil
}

// scheme returns the scheme that all clients of the pool share: Schemes, and what they lack of the types of client-go
// and of CustomResourceDefinitions.
func (p *Pool) scheme() (*runtime.Scheme, error) {
	p.mergeOnce.Do(func() {
		common := runtime.NewScheme()
		builder := runtime.SchemeBuilder{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}
		p.mergeErr, p.merged = builder.AddToScheme(common), runtime.NewScheme()
		for _, scheme := range append(slices.Clone(p.Schemes), common) {
			for kind, known := range scheme.AllKnownTypes() {
				if !p.merged.Recognizes(kind) {
					p.merged.AddKnownTypeWithName(kind, reflect.New(known).Interface().(runtime.Object))
				}
			}
		}
	})
	return p.merged, p.mergeErr
}
