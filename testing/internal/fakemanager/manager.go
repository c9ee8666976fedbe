// Package fakemanager has a manager without a cluster: it records what is set up with it, and which requests come of
// events.
package fakemanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Manager is a manager without a cluster. It records what is set up with it.
type Manager struct {
	// Cache has what is watched and indexed.
	Cache *Cache
	// Requests are those of all controllers.
	Requests *Requests

	config   reconcilers.Config
	mapper   meta.RESTMapper
	server   webhook.Server
	elected  chan struct{}
	registry conversion.Registry

	mu          sync.Mutex
	controllers []controller.Controller
}

var _ reconcilers.Manager = (*Manager)(nil)

// New returns a manager with the clients, discovery, recorders and tracker of a config. The recorder of events has to
// take annotations too. Fake is the client behind that of the config.
func New(config reconcilers.Config, fake client.Client) *Manager {
	m := &Manager{
		config: config,
		Cache: &Cache{
			Reader: config.Client, fake: fake, scheme: config.Scheme(), informers: map[Type]*informer{},
		},
		Requests: &Requests{changed: make(chan struct{}, 1)},
		mapper:   newMapper(config.Scheme(), config.RESTMapper()),
		server:   webhook.NewServer(webhook.Options{}),
		elected:  make(chan struct{}),
		registry: conversion.NewRegistry(),
	}
	close(m.elected)
	return m
}

// NewConfig returns a config of the manager, with the parts of [New] where one of its own would need a cluster.
func (m *Manager) NewConfig() reconcilers.Config {
	c := reconcilers.NewConfig(m, nil, recording.TrackLease)
	c.Client, c.APIReader = m.config.Client, m.config.APIReader
	c.Discovery, c.Tracker = m.config.Discovery, m.config.Tracker
	return c
}

// Add implements [manager.Manager]. Only controllers are started.
func (m *Manager) Add(r manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := r.(controller.Controller); ok {
		m.controllers = append(m.controllers, c)
	}
	return nil
}

// StartControllers starts the controllers and returns when they would work on requests, or with an error at the
// timeout. Call stop after an error too: it waits until the controllers are done, for which ctx has to be done.
func (m *Manager) StartControllers(ctx context.Context, timeout time.Duration) (stop func() error, err error) {
	m.mu.Lock()
	controllers := slices.Clone(m.controllers)
	m.mu.Unlock()
	// A handler may still log when the test is over and its logger gone.
	ctx = logr.NewContext(ctx, logr.Discard())
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var running []chan error
	var queues []*queue
	stop = func() error {
		var errs []error
		for _, done := range running {
			errs = append(errs, <-done)
		}
		for _, q := range queues {
			q.ShutDown()
		}
		return errors.Join(errs...)
	}
	for _, c := range controllers {
		q, started := newQueue(m.Requests)
		queues = append(queues, q)
		if err := useQueue(c, q); err != nil {
			return stop, err
		}
		done := make(chan error, 1)
		go func() { done <- c.Start(ctx) }()
		select {
		case <-started:
			running = append(running, done)
		case <-waiting.Done():
			running = append(running, done)
			return stop, fmt.Errorf("a source takes too long to start: %w", waiting.Err())
		case err := <-done:
			return stop, errors.Join(err, ctx.Err())
		}
	}
	return stop, nil
}

// useQueue makes a controller use the queue. The option of a controller's builder for that belongs to the code under
// test; a controller that is built has a public field with the value of that option.
func useQueue(c controller.Controller, q *queue) error {
	type queueInterface = workqueue.TypedRateLimitingInterface[reconcilers.Request]
	makeQueue := reflect.ValueOf(
		func(string, workqueue.TypedRateLimiter[reconcilers.Request]) queueInterface { return q })
	v := reflect.Indirect(reflect.ValueOf(c))
	if v.Kind() == reflect.Struct {
		field := v.FieldByName("NewQueue")
		if field.IsValid() && field.CanSet() && makeQueue.Type().AssignableTo(field.Type()) {
			field.Set(makeQueue)
			return nil
		}
	}
	return fmt.Errorf("the queue of a %T cannot be observed", c)
}

var errNotStarted = errors.New("the manager of a set-up case is not to be started")

// Start implements [manager.Manager].
func (m *Manager) Start(context.Context) error { return errNotStarted }

// GetControllerOptions implements [manager.Manager].
func (m *Manager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: logr.Discard()}
}

// GetConfig implements [cluster.Cluster]. Nothing answers there.
func (m *Manager) GetConfig() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:0"} }

// GetHTTPClient implements [cluster.Cluster].
func (m *Manager) GetHTTPClient() *http.Client { return &http.Client{} }

// GetCache implements [cluster.Cluster].
func (m *Manager) GetCache() cache.Cache { return m.Cache }

// GetScheme implements [cluster.Cluster].
func (m *Manager) GetScheme() *runtime.Scheme { return m.config.Scheme() }

// GetClient implements [cluster.Cluster].
func (m *Manager) GetClient() client.Client { return m.config.Client }

// GetFieldIndexer implements [cluster.Cluster].
func (m *Manager) GetFieldIndexer() client.FieldIndexer { return m.Cache }

// GetRESTMapper implements [cluster.Cluster].
func (m *Manager) GetRESTMapper() meta.RESTMapper { return m.mapper }

// GetAPIReader implements [cluster.Cluster].
func (m *Manager) GetAPIReader() client.Reader { return m.config.APIReader }

// GetEventRecorderFor implements [cluster.Cluster].
func (m *Manager) GetEventRecorderFor(string) record.EventRecorder {
	return m.config.Recorder
}

// GetEventRecorder implements [cluster.Cluster].
func (m *Manager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return m.config.EventRecorder.(ctrlrecorder.EventRecorder)
}

// Elected implements [manager.Manager].
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// AddMetricsServerExtraHandler implements [manager.Manager].
func (m *Manager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck implements [manager.Manager].
func (m *Manager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck implements [manager.Manager].
func (m *Manager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer implements [manager.Manager]. What is registered there is not served.
func (m *Manager) GetWebhookServer() webhook.Server { return m.server }

// GetLogger implements [manager.Manager].
func (m *Manager) GetLogger() logr.Logger { return logr.Discard() }

// GetConverterRegistry implements [manager.Manager].
func (m *Manager) GetConverterRegistry() conversion.Registry { return m.registry }
