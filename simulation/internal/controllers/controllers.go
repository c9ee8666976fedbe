package controllers

import (
	"context"
	"fmt"
	"log"
	"sync"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say how a cluster behaves beside its API server.
type Options struct {
	// Failed is told of requests that failed for other reasons than that the object has changed meanwhile. They are
	// tried again. Nil stands for log.Println.
	Failed func(error)
}

// Controllers are running.
type Controllers struct {
	runner *runner
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start starts the controllers. They know all objects when it returns. The context ends the start, not the controllers.
func Start(ctx context.Context, config *rest.Config, options Options) (*Controllers, error) {
	resources, err := discover(config)
	if err != nil {
		return nil, fmt.Errorf("discover what to watch: %w", err)
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	typedClient, err := client.NewWithWatch(config, client.Options{
		HTTPClient: http, Scheme: scheme(), Mapper: newMapper(resources),
	})
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), http)
	if err != nil {
		return nil, err
	}
	failed := options.Failed
	if failed == nil {
		failed = func(err error) { log.Println(err) }
	}
	c := &Controllers{runner: newRunner(typedClient, metadataClient, all(options), failed)}
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for _, r := range resources {
		c.runner.watch(running, r)
	}
	if err := c.runner.sync(ctx); err != nil {
		cancel()
		c.runner.watches.Wait()
		return nil, fmt.Errorf("list all objects: %w", err)
	}
	c.done.Go(func() { c.runner.run(running) })
	return c, nil
}

// all returns the controllers in the order in which they look at an object.
func all(Options) []*controller {
	return []*controller{garbageCollector()}
}

// Refresh has all objects looked at again. It is for a test that changed what the functions of the options return.
func (c *Controllers) Refresh() {
	select {
	case c.runner.again <- struct{}{}:
	default:
	}
}

// Stop ends all watches and waits until they have ended.
func (c *Controllers) Stop() {
	c.cancel()
	c.done.Wait()
}
