package testing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"

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
)

// setupManager is a manager without a cluster. It takes note of what is set up with it.
type setupManager struct {
	scheme   *runtime.Scheme
	parts    *parts
	client   *indexedClient
	cache    *setupCache
	mapper   meta.RESTMapper
	server   webhook.Server
	elected  chan struct{}
	registry conversion.Registry
	requests *requestLog

	mu          sync.Mutex
	controllers []controller.Controller
}

var _ reconcilers.Manager = (*setupManager)(nil)

func newSetupManager(expect *ExpectConfig) *setupManager {
	p := expect.made()
	m := &setupManager{
		scheme:   expect.Scheme,
		parts:    p,
		cache:    newSetupCache(expect.Scheme),
		server:   webhook.NewServer(webhook.Options{}),
		elected:  make(chan struct{}),
		registry: conversion.NewRegistry(),
		requests: newRequestLog(),
	}
	m.client = &indexedClient{recorder: p.client, cache: m.cache}
	m.cache.Reader = m.client
	m.mapper = newSetupMapper(expect.Scheme, p.client.RESTMapper())
	close(m.elected)
	return m
}

// newConfig returns the config of the manager, in which what the case observes takes the place of what needs a cluster.
func (m *setupManager) newConfig() reconcilers.Config {
	c := reconcilers.NewConfig(m, nil, trackLease)
	c.Client = m.client
	c.APIReader = m.parts.config.APIReader
	c.Discovery = m.parts.config.Discovery
	c.Tracker = m.parts.tracker
	return c
}

// Add implements [manager.Manager]. Only controllers are started.
func (m *setupManager) Add(r manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := r.(controller.Controller); ok {
		m.controllers = append(m.controllers, c)
	}
	return nil
}

// start starts the controllers and returns once they would work on requests. Stop waits until they are done, for which ctx
// has to be; it is to be called after an error too.
func (m *setupManager) start(ctx context.Context) (stop func() error, err error) {
	m.mu.Lock()
	controllers := slices.Clone(m.controllers)
	m.mu.Unlock()
	// What a handler logs may come after the test, which is then not there to log to.
	ctx = logr.NewContext(ctx, logr.Discard())
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var running []chan error
	stop = func() error {
		var errs []error
		for _, done := range running {
			errs = append(errs, <-done)
		}
		return errors.Join(errs...)
	}
	for _, c := range controllers {
		queue := newSetupQueue(m.requests)
		if err := useQueue(c, queue); err != nil {
			return stop, err
		}
		done := make(chan error, 1)
		go func() { done <- c.Start(ctx) }()
		select {
		case <-queue.ready:
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

// useQueue lets a controller use the queue. Builders of controllers have an option for that, but it is for those who
// build; a controller that is built has what the option sets as a public field.
func useQueue(c controller.Controller, queue *setupQueue) error {
	makeQueue := reflect.ValueOf(
		func(string, workqueue.TypedRateLimiter[reconcilers.Request]) workqueue.TypedRateLimitingInterface[reconcilers.Request] {
			return queue
		},
	)
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
func (m *setupManager) Start(context.Context) error { return errNotStarted }

// GetControllerOptions implements [manager.Manager].
func (m *setupManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: logr.Discard()}
}

// GetConfig implements [cluster.Cluster]. Nothing answers there.
func (m *setupManager) GetConfig() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:0"} }

// GetHTTPClient implements [cluster.Cluster].
func (m *setupManager) GetHTTPClient() *http.Client { return &http.Client{} }

// GetCache implements [cluster.Cluster].
func (m *setupManager) GetCache() cache.Cache { return m.cache }

// GetScheme implements [cluster.Cluster].
func (m *setupManager) GetScheme() *runtime.Scheme { return m.scheme }

// GetClient implements [cluster.Cluster].
func (m *setupManager) GetClient() client.Client { return m.client }

// GetFieldIndexer implements [cluster.Cluster].
func (m *setupManager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// GetRESTMapper implements [cluster.Cluster].
func (m *setupManager) GetRESTMapper() meta.RESTMapper { return m.mapper }

// GetAPIReader implements [cluster.Cluster].
func (m *setupManager) GetAPIReader() client.Reader { return m.parts.config.APIReader }

// GetEventRecorderFor implements [cluster.Cluster].
func (m *setupManager) GetEventRecorderFor(string) record.EventRecorder {
	return oldRecorder{m.parts.events}
}

// GetEventRecorder implements [cluster.Cluster].
func (m *setupManager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return newRecorder{m.parts.events}
}

// Elected implements [manager.Manager].
func (m *setupManager) Elected() <-chan struct{} { return m.elected }

// AddMetricsServerExtraHandler implements [manager.Manager].
func (m *setupManager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck implements [manager.Manager].
func (m *setupManager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck implements [manager.Manager].
func (m *setupManager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer implements [manager.Manager]. What is registered there is not served.
func (m *setupManager) GetWebhookServer() webhook.Server { return m.server }

// GetLogger implements [manager.Manager].
func (m *setupManager) GetLogger() logr.Logger { return logr.Discard() }

// GetConverterRegistry implements [manager.Manager].
func (m *setupManager) GetConverterRegistry() conversion.Registry { return m.registry }
