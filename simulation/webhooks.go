package simulation

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// hooks are the webhooks of the operator's processes. The last process that started serves them.
type hooks struct {
	mu  sync.Mutex
	mux *http.ServeMux
	// process is the context of the process that serves.
	process context.Context
}

// handler returns what serves webhooks at any address, nil if no process does.
func (h *hooks) handler(string) http.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mux == nil {
		return nil
	}
	mux, process := h.mux, h.process
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(withPanicsOf(r.Context(), process)))
	})
}

func (h *hooks) server() webhook.Server { return &hookServer{hooks: h, mux: http.NewServeMux()} }

// hookServer is the webhook server of a process. It needs no address and no certificate.
type hookServer struct {
	hooks *hooks
	mux   *http.ServeMux

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
	s.hooks.mux, s.hooks.process = s.mux, ctx
	s.hooks.mu.Unlock()
	<-ctx.Done()
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	if s.hooks.mux == s.mux {
		s.hooks.mux, s.hooks.process = nil, nil
	}
	return nil
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
