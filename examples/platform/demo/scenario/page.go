package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OpenWithPage is [Open], with a page of the operator that is served on the loopback interface until ctx ends, and with
// a fight among the steps. It returns the address of the page.
func OpenWithPage(ctx context.Context, options demo.Options) (*demo.Scenario, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("unable to serve the page: %w", err)
	}
	// A fight is over when nobody has changed the object for more than a minute.
	options.Patience = 5 * time.Minute
	shown := page.New(page.Options{Access: page.OnLoopback()})
	s := &scenario{Scenario: demo.Scenario{Options: options}, observers: []reconcilers.Observer{shown}}
	if err := s.open(ctx); err != nil {
		return nil, "", errors.Join(err, listener.Close())
	}
	drift := s.drift()
	s.Steps = slices.Concat(s.installation(), drift[:1], s.fight(), drift[1:], s.upgrades(), s.search(), s.deletion())
	server := &http.Server{Handler: shown, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	// The error is that the server is closed.
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return &s.Scenario, "http://" + listener.Addr().String() + "/", nil
}
