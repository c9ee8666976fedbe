package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/internal/loopback"
	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// defaultAddress is a free port that no other machine reaches.
const defaultAddress = "127.0.0.1:0"

// listen begins to listen at the address of the environment.
func (e *Environment) listen() (net.Listener, error) {
	address := e.Address
	if address == "" {
		address = defaultAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the Address %q: %w", address, err)
	}
	if !loopback.IsHost(host) {
		if !e.AllowOtherMachines {
			return nil, fmt.Errorf("the Address %q is not one of the loopback interface: set AllowOtherMachines to "+
				"have other machines reach the cluster", address)
		}
		logf.Log.WithName("cluster").Info("other machines may reach the cluster", "address", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen at Address %q: %w", address, err)
	}
	return listener, nil
}

// startServer starts an API server, and returns what serves its requests.
func (e *Environment) startServer() (http.Handler, error) {
	options, err := e.restore()
	if err != nil {
		return nil, err
	}
	kept := storage.New(options)
	e.ends = append(e.ends, func() error { kept.Close(); return nil })
	s, err := server.Start(context.Background(), server.Options{
		Storage: kept.Decorator(), Identities: &server.Identities{Salt: string(uuid.NewUUID())},
		RBAC: true, Credentials: e.authority, RealTime: true,
	})
	if err != nil {
		return nil, err
	}
	e.ends = append(e.ends, func() error { s.Stop(); return nil })
	return s.Handler(), nil
}

// namespaceGrace is shorter than the five seconds of kube-controller-manager, for which other API servers may not know
// of the deletion yet. As times of deletion are in whole seconds, it is at least one second.
const namespaceGrace = 2 * time.Second

// startStandIns starts what a cluster has beside its API server. It does not go over the network.
func (e *Environment) startStandIns() error {
	token, err := e.authority.token(&user.DefaultInfo{
		Name: user.KubeControllerManager, Groups: []string{user.SystemPrivilegedGroup},
	}, time.Time{})
	if err != nil {
		return err
	}
	config := &rest.Config{
		Host: server.Host, Transport: server.RoundTripper(e.handler), BearerToken: token, QPS: -1,
		UserAgent: "kube-controller-manager",
	}
	logger := logf.Log.WithName("cluster")
	standIns, err := controllers.Start(context.Background(), config, controllers.Options{
		Behavior: e.Pods, NoWorkloads: !e.Workloads, Without: e.Without, Present: &e.kinds,
		NamespaceGrace: namespaceGrace,
		Failed: func(err error) {
			logger.Info("a controller of the cluster tries again", "reason", err.Error())
		},
	})
	if err != nil {
		return err
	}
	e.ends = append(e.ends, func() error { standIns.Stop(); return nil })
	return nil
}

const (
	// headerTime is how long a client may take to send what is before the body of a request.
	headerTime = 30 * time.Second
	// idleTime is how long a connection without requests is kept, as long as by clients.
	idleTime = 90 * time.Second
	// maxStreams is how many requests and watches may share a connection: a manager has one for all its watches.
	maxStreams = 1000
)

// serve serves requests with TLS until stopServing is called.
func (e *Environment) serve(listener net.Listener) {
	s := &http.Server{
		Handler: e.handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{e.certificate},
			// Who has no certificate may have a token.
			ClientAuth: tls.RequestClientCert,
		},
		// A client that does not trust the authority ends its connection, and says so itself.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(listener, "", "") }()
	e.disconnect = func() error {
		err := s.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}

// stopServing closes all connections, and accepts no others.
func (e *Environment) stopServing() error {
	if e.disconnect == nil {
		return nil
	}
	disconnect := e.disconnect
	e.disconnect = nil
	return disconnect()
}
