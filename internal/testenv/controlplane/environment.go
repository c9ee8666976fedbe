package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

const (
	// startTimeout is for one process, on a busy machine.
	startTimeout = 5 * time.Minute
	stopTimeout  = time.Minute
)

// Environment is a running control plane. Its methods are safe for concurrent use.
type Environment struct {
	// existing is set for a cluster that Start did not start; all fields after config are nil then.
	existing bool
	config   *rest.Config
	// inProcess is set for an in-process server; envtest and supervision are nil then.
	inProcess *cluster.Environment

	envtest     *envtest.Environment
	supervision *supervision
	etcd        *output
	apiServer   *output
	// processes are clients of the API server, in the order in which they were started.
	processes []*process

	// mu makes stopping and starting take turns.
	mu      sync.Mutex
	stopped bool
	// down is set between StopAPIServer and StartAPIServer.
	down bool

	// users makes additions of users take turns: envtest numbers their certificates without a lock.
	users sync.Mutex
}

// Start runs a control plane and returns when its API server answers and serves the definitions: with REAL=true
// kube-apiserver, otherwise the in-process server, which has no second API server, and not all that Options may ask
// for. The libraries of the in-process server log by klog. The caller calls Stop in the end. A missing or broken
// program is reported as a *BinaryError; if anything fails, nothing is left running. Cancelling ctx prevents the
// next step of starting, and does nothing afterwards.
func Start(ctx context.Context, options Options) (*Environment, error) {
	if options.UsesExistingCluster() {
		return useExisting(options)
	}
	e := &Environment{etcd: &output{next: options.Output}, apiServer: &output{next: options.Output}}
	if !Real() {
		if err := e.startInProcess(ctx, options); err != nil {
			return nil, err
		}
		return e, nil
	}
	programs, err := findBinaries()
	if err != nil {
		return nil, err
	}
	if err := options.checkPrograms(ctx, programs); err != nil {
		return nil, err
	}
	err = e.start(ctx, programs, options)
	if err == nil {
		err = e.startPrograms(ctx, programs, options)
	}
	if err == nil && options.Nodes > 0 {
		err = e.startNodes(ctx, options.Nodes)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// useExisting connects to the cluster of the current kubeconfig.
func useExisting(options Options) (*Environment, error) {
	existing := true
	env := &envtest.Environment{
		UseExistingCluster: &existing,
		CRDs:               options.CRDs,
	}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("cannot use the existing cluster: %w", err)
	}
	return &Environment{existing: true, config: config}, nil
}

// start runs etcd and the API server.
func (e *Environment) start(ctx context.Context, programs binaries, options Options) error {
	dir, err := os.MkdirTemp("", "espalier-controlplane-")
	if err != nil {
		return fmt.Errorf("no folder for the data of the control plane: %w", err)
	}
	e.supervision, err = supervise(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	env, err := newEnvtest(dir, options)
	if err != nil {
		return err
	}
	etcd, server := env.ControlPlane.Etcd, env.ControlPlane.APIServer
	etcd.Out, etcd.Err = e.etcd, e.etcd
	server.Out, server.Err = e.apiServer, e.apiServer
	if etcd.Path, err = e.supervision.wrap(etcdBinary, programs.path(etcdBinary)); err != nil {
		return err
	}
	if server.Path, err = e.supervision.wrap(apiServerBinary, programs.path(apiServerBinary)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.envtest = env
	config, err := env.Start()
	if err != nil {
		const format = "could not start the control plane: %w\netcd printed last:\n%s\nkube-apiserver printed last:\n%s"
		return fmt.Errorf(format, err, e.etcd.last(), e.apiServer.last())
	}
	e.config = withoutRateLimit(config)
	return ctx.Err()
}

// newEnvtest prepares an environment that keeps all its files in dir.
func newEnvtest(dir string, options Options) (*envtest.Environment, error) {
	etcd := &envtest.Etcd{DataDir: filepath.Join(dir, "data")}
	server := &envtest.APIServer{CertDir: filepath.Join(dir, "certificates")}
	for _, d := range []string{etcd.DataDir, server.CertDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, fmt.Errorf("no folder for the data of the control plane: %w", err)
		}
	}
	// A cluster of one member elects it when the time-out is over, and needs no caution about the network.
	etcd.Configure().Set("heartbeat-interval", "10").Set("election-timeout", "100").Set("log-level", "error")
	// Fair queuing protects an API server from its clients, and delays the start by setting itself up.
	server.Configure().Set("enable-priority-and-fairness", "false")
	own := false
	return &envtest.Environment{
		ControlPlane:             envtest.ControlPlane{Etcd: etcd, APIServer: server},
		UseExistingCluster:       &own,
		CRDs:                     options.CRDs,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}, nil
}

// withoutRateLimit returns a copy of config without the rate limit of clients: tests and benchmarks should wait for the
// server only.
func withoutRateLimit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	return config
}

// Config returns the configuration of an administrator's client, as a copy. It has no rate limit, except for an
// existing cluster.
func (e *Environment) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Existing reports whether Start connected to an existing cluster, which Stop leaves running.
func (e *Environment) Existing() bool { return e.existing }

// User returns the configuration of a client for a user of that name and those groups. The user may do what RBAC
// allows, which is nothing at first.
func (e *Environment) User(name string, groups ...string) (*rest.Config, error) {
	if e.existing {
		config := e.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
		return config, nil
	}
	e.users.Lock()
	defer e.users.Unlock()
	asked, base := envtest.User{Name: name, Groups: groups}, withoutRateLimit(&rest.Config{})
	if e.inProcess != nil {
		user, err := e.inProcess.AddUser(asked, base)
		if err != nil {
			return nil, err
		}
		return user.Config(), nil
	}
	user, err := e.envtest.AddUser(asked, base)
	if err != nil {
		return nil, fmt.Errorf("could not add the user %s: %w", name, err)
	}
	return user.Config(), nil
}

// Err returns nil as long as the processes run as they should, and an error with what it printed last once one of them
// has ended by itself, other than etcd and kube-apiserver.
func (e *Environment) Err() error {
	var errs []error
	for _, p := range e.processes {
		errs = append(errs, p.err())
	}
	return errors.Join(errs...)
}

// Stop ends what Start has started and removes its data; an existing cluster is left as it is, with the definitions
// that were installed. It returns the error of Err, if any. Further calls do nothing.
func (e *Environment) Stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped || e.existing {
		return nil
	}
	e.stopped = true

	var errs []error
	for _, p := range e.processes {
		errs = append(errs, p.stop())
	}
	if e.inProcess != nil {
		errs = append(errs, e.inProcess.Stop())
	}
	if e.envtest != nil {
		errs = append(errs, e.stopAPIServer(), e.killed(etcdBinary, e.envtest.ControlPlane.Etcd.Stop))
	}
	if e.supervision != nil {
		errs = append(errs, e.supervision.end())
	}
	return errors.Join(errs...)
}
