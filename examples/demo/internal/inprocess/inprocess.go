// Package inprocess has the demos take place on clusters in the process.
package inprocess

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// Start starts a cluster whose workloads nobody runs: steps play the part of those who do.
func Start(context.Context) (demo.Cluster, error) {
	running := &inProcess{environment: &cluster.Environment{NoWorkloads: true}}
	config, err := running.environment.Start()
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	running.target = host.Host
	if err := running.StartAPIServer(); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return running, nil
}

// inProcess is a cluster that is reached through a connection which can be cut.
type inProcess struct {
	environment *cluster.Environment
	// target is the address of the API server, and address the one at which clients reach it.
	target, address string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// Config implements [demo.Cluster].
func (c *inProcess) Config() *rest.Config { return c.reached(c.environment.Config) }

// User implements [demo.Cluster].
func (c *inProcess) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.environment.AddUser(cluster.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, err
	}
	return c.reached(user.Config()), nil
}

// reached returns a configuration without a rate limit: the demo waits for the operator alone.
func (c *inProcess) reached(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host, config.QPS, config.Burst = "https://"+c.address, -1, -1
	return config
}

// Existing implements [demo.Cluster].
func (*inProcess) Existing() bool { return false }

// Stop implements [demo.Cluster].
func (c *inProcess) Stop() error { return errors.Join(c.StopAPIServer(), c.environment.Stop()) }

// StopAPIServer implements [demo.Cluster]: it cuts all connections, and accepts none.
func (c *inProcess) StopAPIServer() error {
	c.mu.Lock()
	var err error
	if c.listener != nil {
		err = c.listener.Close()
	}
	c.listener = nil
	for connection := range c.open {
		_ = connection.Close() // It may be closed already.
	}
	c.mu.Unlock()
	c.serving.Wait()
	return err
}

// StartAPIServer implements [demo.Cluster].
func (c *inProcess) StartAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	address := c.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	c.listener, c.address, c.open = listener, listener.Addr().String(), map[net.Conn]bool{}
	c.serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			c.serving.Go(func() { c.forward(connection) })
		}
	})
	return nil
}

// forward copies what comes from a client to the API server, and back, until one of the two closes.
func (c *inProcess) forward(from net.Conn) {
	to, err := net.Dial("tcp", c.target)
	if err != nil {
		_ = from.Close() // The client sees that.
		return
	}
	if !c.keep(from, to) {
		return
	}
	defer c.release(from, to)
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(pair[1], pair[0]) // A connection that is cut is what this is for.
			_ = pair[0].Close()
			_ = pair[1].Close()
		})
	}
	both.Wait()
}

// keep notes connections to be closed, and closes them at once if the API server is not to be reached any more.
func (c *inProcess) keep(connections ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connection := range connections {
		if c.listener == nil {
			_ = connection.Close()
		} else {
			c.open[connection] = true
		}
	}
	return c.listener != nil
}

func (c *inProcess) release(connections ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connection := range connections {
		delete(c.open, connection)
	}
}
