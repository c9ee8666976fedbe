package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/testing/internal/storage"
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
	// Storage makes the storages of the resources. It is required but for Worlds. Two servers with the same storage are
	// one after a restart, or two beside each other.
	Storage generic.StorageDecorator
	// Worlds has each request read and write the storage of its context, see [World], or this one if it has none.
	// Clients use [Server.Transport]. Webhooks, admission policies and RBAC have no effect, and discovery does not know
	// custom resources. All other options but Credentials are ignored.
	Worlds *storage.Storage
	// Identities are shared by the servers of a storage. Nil stands for new ones, for a server that is the only one.
	Identities *Identities
	// Definitions are created if they do not exist. Their kinds are served when the server has started.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// FixedDefinitions says that no definition is created, changed or deleted after the start. What looks after
	// definitions ends then, and with it most of what an idle server does: its queues wake up twice a second. It is for
	// tests in which months pass.
	FixedDefinitions bool
	// Webhooks returns the handler of a webhook by its address, such as "hooks.system.svc:443" for the port 443 of a
	// service, or the host and port of a URL. Nil, also from the function, refuses the connection. A webhook is called
	// without TLS, but only if its configuration has the bundle of an authority.
	Webhooks func(address string) http.Handler
	// RBAC has requests authorized by roles and their bindings. Otherwise everybody may do everything.
	RBAC bool
	// Credentials say who a client is. Nil believes what a client says, see [nameTokens]: it is for a server that
	// nobody reaches from outside of the process.
	Credentials Credentials
	// RealTime says that the server is not in a bubble. Its start takes no longer than it needs, and webhooks are
	// called over the network, see [networkWebhooks]: Webhooks has no effect.
	RealTime bool
}

// stored returns what gives objects their identities, and where they are stored.
func (o Options) stored() (identifier, generic.StorageDecorator) {
	switch {
	case o.Worlds != nil:
		return stamps{o.Worlds}, o.Worlds.ByContext()
	case o.Identities != nil:
		return o.Identities, o.Storage
	}
	return &Identities{}, o.Storage
}

// Server is a running API server.
type Server struct {
	ctx    context.Context
	cancel context.CancelFunc
	// definitions serves definitions and custom resources, and builtIn all else. A request comes to builtIn first.
	definitions, builtIn *genericapiserver.GenericAPIServer
	// informers are those of the admission plug-ins and the authorizer.
	informers informers.SharedInformerFactory
	// custom and world are nil but for worlds.
	custom *customResources
	world  *worldHandler
	// repeats are those of worlds that repeat.
	repeats repeats

	// mu protects stopped, and requests from a request that begins when nobody waits for it any more.
	mu       sync.Mutex
	stopped  bool
	requests sync.WaitGroup
}

// Start starts a server. It returns when the server serves all that is in the storage, after three seconds, which are
// virtual in a bubble, or sooner in real time. The context ends the start, not the server.
func Start(ctx context.Context, options Options) (*Server, error) {
	switch {
	case options.Worlds != nil:
		options = Options{Worlds: options.Worlds, Credentials: options.Credentials}
	case options.Storage == nil:
		return nil, errors.New("the options have no storage")
	}
	begin := time.Now()
	s := &Server{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	loopback := &rest.Config{
		Host: Host, Transport: ownTransport{s}, QPS: -1,
		UserAgent:     "kube-apiserver",
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	}
	if options.Credentials != nil {
		loopback.BearerToken = string(uuid.NewUUID())
	}
	if err := s.build(options, loopback); err != nil {
		s.cancel()
		return nil, fmt.Errorf("build the API server: %w", err)
	}
	if err := s.run(ctx, options, loopback); err != nil {
		s.Stop()
		return nil, err
	}
	if !options.RealTime && options.Worlds == nil {
		// It takes as long as is said, or twice as long and so on.
		time.Sleep(startTime - time.Since(begin)%startTime)
	}
	return s, nil
}

// run starts what the servers do beside requests, waits until they serve, and creates what is to be there.
func (s *Server) run(ctx context.Context, options Options, loopback *rest.Config) error {
	watched, cancel := context.WithCancel(s.ctx)
	if options.FixedDefinitions || options.Worlds != nil {
		defer cancel()
	} else {
		context.AfterFunc(s.ctx, cancel)
	}
	rest := s.ctx
	if options.Worlds != nil {
		rest = watched // Nothing is watched: what is in worlds is not in the storage of the server.
	}
	if _, _, err := s.definitions.PrepareRun().NonBlockingRunWithContext(watched, 0); err != nil {
		return fmt.Errorf("run the server of definitions: %w", err)
	}
	if _, _, err := s.builtIn.PrepareRun().NonBlockingRunWithContext(rest, 0); err != nil {
		return fmt.Errorf("run the server of built-in kinds: %w", err)
	}
	// To stop before the hooks are done would end the process.
	for _, server := range []*genericapiserver.GenericAPIServer{s.builtIn, s.definitions} {
		if err := waitUntilReady(context.WithoutCancel(ctx), server.UnprotectedHandler()); err != nil {
			return err
		}
	}
	if err := createInitial(ctx, options, loopback); err != nil {
		return err
	}
	return define(ctx, options.Definitions, loopback)
}

// waitUntilReady waits for all that a server does at its start.
func waitUntilReady(ctx context.Context, server http.Handler) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, Host+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	var last []byte
	err = wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(context.Context) (bool, error) {
		response, err := RoundTripper(server).RoundTrip(request)
		if err != nil {
			return false, err
		}
		defer func() { _ = response.Body.Close() }()
		last, err = io.ReadAll(response.Body)
		return response.StatusCode == http.StatusOK, err
	})
	if err != nil {
		return fmt.Errorf("wait for the API server: %w: %s", err, last)
	}
	return nil
}

// Handler returns what serves requests, until the server is stopped.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Worlds returns the storage that worlds fork, nil for a server without worlds. It has the namespaces of each cluster.
func (s *Server) Worlds() *storage.Storage {
	if s.custom == nil {
		return nil
	}
	return s.custom.base
}

// serve lets a request end with the server. Those of worlds end by themselves: to wait for them would tie the server to
// the bubble of the first one.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.world != nil {
		s.world.ServeHTTP(w, r)
		return
	}
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.requests.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	s.builtIn.Handler.ServeHTTP(w, r.WithContext(ctx))
}

// ownTransport is the transport of the server's own informers, which learn some time after the requests that the server
// has stopped. Their requests are canceled then: to them, a broken connection would be an error.
type ownTransport struct{ server *Server }

// RoundTrip implements [http.RoundTripper].
func (t ownTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := RoundTripper(http.HandlerFunc(t.server.serve)).RoundTrip(request)
	if err != nil && t.server.ctx.Err() != nil {
		return nil, context.Canceled
	}
	return response, err
}

// begin counts a request. It reports false if the server is stopped.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.requests.Add(1)
	}
	return !s.stopped
}

// Stop ends all requests, watches too, and waits until they have ended. A later request breaks the connection. What the
// libraries leave behind ends within two minutes, in virtual time, too: they wait for requests to a definition that
// changed.
func (s *Server) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.cancel()
	s.mu.Unlock()
	s.requests.Wait()
	s.builtIn.Destroy()
	s.definitions.Destroy()
	s.informers.Shutdown()
}
