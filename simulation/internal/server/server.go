package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Host is the address that clients have in their configuration. Nothing listens there.
const Host = "https://inproc"

const (
	// poll is how often a server that starts looks whether something is done.
	poll = 10 * time.Millisecond
	// startTime is how long a start takes, so that it takes the same time in each run. An API server lets the first
	// request for a custom resource wait for two seconds after its definition was established: that is over then.
	startTime = 3 * time.Second
)

var addresses = discovery.DefaultAddresses{DefaultAddress: "inproc:443"}

// Options say what a server is like.
type Options struct {
	// Storage makes the storages of the resources. It is required. Two servers with the same storage are one after a
	// restart, or two beside each other.
	Storage generic.StorageDecorator
	// Identities are shared by the servers of a storage. Nil stands for new ones, for a server that is the only one.
	Identities *Identities
	// Definitions are created if they do not exist. Their kinds are served when the server has started.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Webhooks returns the handler of a webhook by its address, such as "hooks.system.svc:443" for the port 443 of a
	// service, or the host and port of a URL. Nil, also from the function, refuses the connection. A webhook is called
	// without TLS, but only if its configuration has the bundle of an authority.
	Webhooks func(address string) http.Handler
	// RBAC has requests authorized by roles and their bindings. Otherwise everybody may do everything.
	RBAC bool
}

// Server is a running API server.
type Server struct {
	ctx    context.Context
	cancel context.CancelFunc
	chain  http.Handler
	// requests are those that the handler works at.
	requests sync.WaitGroup
	destroy  func()
	// informers are those of the admission plug-ins and the authorizer.
	informers informers.SharedInformerFactory
}

// Start starts a server. It returns when the server serves all that is in the storage, after three seconds, which are
// virtual in a bubble. The context ends the start, not the server.
func Start(ctx context.Context, options Options) (*Server, error) {
	begin := time.Now()
	s := &Server{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	loopback := &rest.Config{
		Host: Host, Transport: RoundTripper(http.HandlerFunc(s.serve)), QPS: -1,
		UserAgent:     "kube-apiserver",
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	}
	prepared, err := s.build(options, loopback)
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("build the API server: %w", err)
	}
	s.chain, s.destroy = prepared.Handler, prepared.Destroy
	p := prepared.PrepareRun()
	if _, _, err := p.NonBlockingRunWithContext(s.ctx, 0); err != nil {
		s.Stop()
		return nil, fmt.Errorf("run the API server: %w", err)
	}
	if err := s.prepare(ctx, options, loopback); err != nil {
		s.Stop()
		return nil, err
	}
	// It takes as long as is said, or twice as long and so on.
	time.Sleep(startTime - time.Since(begin)%startTime)
	return s, nil
}

// prepare waits until the server serves, and creates what is to be there.
func (s *Server) prepare(ctx context.Context, options Options, loopback *rest.Config) error {
	// To stop before the hooks are done would end the process.
	if err := s.waitUntilReady(context.WithoutCancel(ctx), loopback); err != nil {
		return err
	}
	if err := createInitial(ctx, options, loopback); err != nil {
		return err
	}
	return define(ctx, options.Definitions, loopback)
}

// waitUntilReady waits for all that the server does at its start.
func (s *Server) waitUntilReady(ctx context.Context, config *rest.Config) error {
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
		body, err := client.Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
		last = err
		if err != nil {
			last = fmt.Errorf("%w: %s", err, body)
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server: %w: %w", err, last)
	}
	return nil
}

func unversioned(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType = ""
	c.NegotiatedSerializer = codecs()
	return c
}

// Handler returns what serves requests, until the server is stopped.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// serve lets a request end with the server.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	s.chain.ServeHTTP(w, r.WithContext(ctx))
}

// Stop ends all requests, watches too, and waits until they have ended. A later request breaks the connection. What the
// libraries leave behind ends within two minutes, in virtual time, too: they wait for requests to a definition that
// changed.
func (s *Server) Stop() {
	s.cancel()
	s.requests.Wait()
	if s.destroy != nil {
		s.destroy()
		s.informers.Shutdown()
	}
}

// build puts the servers of the chain together: that of the built-in kinds leaves to that of the definitions what it
// does not know.
func (s *Server) build(options Options, loopback *rest.Config) (*genericapiserver.GenericAPIServer, error) {
	identities := options.Identities
	if identities == nil {
		identities = &Identities{}
	}
	decorator := identities.decorate(options.Storage)
	hooks := webhooks{options.Webhooks}
	clients, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return nil, err
	}
	s.informers = informers.NewSharedInformerFactory(clients, 0)
	config, forDefinitions := newConfig(codecs(), loopback), newConfig(apiextensions.Codecs, loopback)
	var roles *roleAuthorizer
	if options.RBAC {
		roles = newRoleAuthorizer(s.informers)
		config.Authorization.Authorizer, forDefinitions.Authorization.Authorizer = roles, roles
	}
	groups, err := newGroups(decorator, identities, config.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	plugins, err := s.newAdmission(config, clients, hooks, roles)
	if err != nil {
		return nil, err
	}
	config.AdmissionControl = plugins
	config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	forDefinitions.AdmissionControl = plugins
	forDefinitions.AggregatedDiscoveryGroupManager = config.AggregatedDiscoveryGroupManager
	definitions, err := newDefinitions(forDefinitions, decorator, hooks)
	if err != nil {
		return nil, err
	}
	server, err := config.Complete(nil).New("kube-apiserver", definitions)
	if err != nil {
		return nil, err
	}
	err = server.AddPostStartHook("start-informers", func(hook genericapiserver.PostStartHookContext) error {
		s.informers.StartWithContext(hook)
		s.informers.WaitForCacheSync(hook.Done())
		return nil
	})
	if err != nil {
		return nil, err
	}
	installGroups(server, config, groups, definitions.UnprotectedHandler())
	return server, nil
}
