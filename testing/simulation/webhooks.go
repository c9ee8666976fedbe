package simulation

import (
	"context"
	_ "embed" // for the bundle
	"errors"
	"net/http"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// authority is the bundle of the authority that webhooks of the operator have their certificates from.
//
//go:embed authority.pem
var authority []byte

// hooks are the webhooks of the operator's processes, which serve them by turns, as those behind a Service.
type hooks struct {
	mu sync.Mutex
	// serving are the processes that serve, and next is the one whose turn it is.
	serving []*hookServer
	next    int
	// others are the handlers of others, by their address.
	others map[string]http.Handler
}

// handler returns what serves webhooks at an address, nil if nobody does. What is nobody else's is the operator's.
func (h *hooks) handler(address string) http.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, ok := h.others[address]; ok {
		return other
	}
	h.serving = slices.DeleteFunc(h.serving, func(s *hookServer) bool { return s.process.Err() != nil })
	if len(h.serving) == 0 {
		return nil
	}
	h.next++
	return h.serving[h.next%len(h.serving)]
}

// ServeWebhooks has webhooks of somebody else than the operator be called at an address, such as
// "hooks.system.svc:443" for the port 443 of a service. Nil has nothing listen there.
func (w *World) ServeWebhooks(address string, handler http.Handler) {
	w.hooks.mu.Lock()
	defer w.hooks.mu.Unlock()
	if w.hooks.others == nil {
		w.hooks.others = map[string]http.Handler{}
	}
	w.hooks.others[address] = handler
}

// server returns the webhook server of a process, which ends with its context.
func (h *hooks) server(process context.Context) webhook.Server {
	return &hookServer{hooks: h, process: process, mux: http.NewServeMux()}
}

// hookServer is the webhook server of a process. It needs no address and no certificate.
type hookServer struct {
	hooks   *hooks
	process context.Context
	mux     *http.ServeMux

	mu      sync.Mutex
	started bool
}

var _ webhook.Server = &hookServer{}

// NeedLeaderElection implements [webhook.Server].
func (*hookServer) NeedLeaderElection() bool { return false }

// Register implements [webhook.Server].
func (s *hookServer) Register(path string, hook http.Handler) { s.mux.Handle(path, hook) }

// WebhookMux implements [webhook.Server].
func (s *hookServer) WebhookMux() *http.ServeMux { return s.mux }

// Start implements [webhook.Server]. It serves until the context ends.
func (s *hookServer) Start(ctx context.Context) error {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.hooks.mu.Lock()
	s.hooks.serving = append(s.hooks.serving, s)
	s.hooks.mu.Unlock()
	<-ctx.Done()
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.serving = slices.DeleteFunc(s.hooks.serving, func(other *hookServer) bool { return other == s })
	return nil
}

// ServeHTTP implements [http.Handler]. A panic is one of the process. If the process dies meanwhile, the connection
// breaks.
func (s *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(withPanicsOf(r.Context(), s.process))
	defer cancel()
	defer context.AfterFunc(s.process, cancel)()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
	if s.process.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// StartedChecker implements [webhook.Server].
func (s *hookServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.started {
			return errors.New("the webhook server has not started")
		}
		return nil
	}
}

// trusted returns an object with the bundle of the authority wherever it says how a webhook is called, and has no
// bundle. In a cluster, what deploys the operator sets it.
func trusted[T runtime.Object](obj T) T {
	obj = obj.DeepCopyObject().(T)
	var configs []*admissionregistrationv1.WebhookClientConfig
	switch o := runtime.Object(obj).(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			configs = append(configs, &o.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			configs = append(configs, &o.Webhooks[i].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		c := o.Spec.Conversion
		if c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && len(c.Webhook.ClientConfig.CABundle) == 0 {
			c.Webhook.ClientConfig.CABundle = authority
		}
	}
	for _, c := range configs {
		if len(c.CABundle) == 0 {
			c.CABundle = authority
		}
	}
	return obj
}

func trustedAll[T runtime.Object](objects []T) []T {
	all := make([]T, len(objects))
	for i, obj := range objects {
		all[i] = trusted(obj)
	}
	return all
}
