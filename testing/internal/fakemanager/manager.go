// Package fakemanager has a manager without a cluster. It records watches, indexes, and the requests that events cause.
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Manager is a manager without a cluster. It records what is set up with it.
type Manager struct {
	// Cache has what is watched and indexed.
	Cache *Cache
	// Requests are those of all controllers.
	Requests *Requests

	// Manager does what needs no cluster.
	manager.Manager
	config  reconcilers.Config
	elected chan struct{}

	mu          sync.Mutex
	controllers []controller.Controller
}

var _ reconcilers.Manager = (*Manager)(nil)

// New returns a manager with the clients, discovery, recorders and tracker of a config. The recorder of events has to
// take annotations too. Fake is the fake client that makes the calls of the config's client.
func New(config reconcilers.Config, fake client.Client) (*Manager, error) {
	scheme := config.Scheme()
	m := &Manager{
		config:   config,
		Cache:    &Cache{Reader: config.Client, fake: fake, scheme: scheme, informers: map[Type]*informer{}},
		Requests: &Requests{changed: make(chan struct{}, 1)},
		elected:  make(chan struct{}),
	}
	close(m.elected)
	var err error
	// Nothing answers at this address.
	m.Manager, err = manager.New(&rest.Config{Host: "http://127.0.0.1:0"}, manager.Options{
		Scheme: scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return newMapper(scheme, config.RESTMapper()), nil
		},
		NewCache:   func(*rest.Config, cache.Options) (cache.Cache, error) { return m.Cache, nil },
		NewClient:  func(*rest.Config, client.Options) (client.Client, error) { return config.Client, nil },
		Logger:     logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), Logger: logr.Discard()},
	})
	return m, err
}

// NewConfig returns a config of the manager. Parts that would need a cluster are those of the config given to [New].
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
