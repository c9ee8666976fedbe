package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// SecondAPIServer is another API server on the etcd of an [Environment], with the same users and data, an address and a
// certificate of its own. Both have one Lease, since its name comes from the host.
type SecondAPIServer struct {
	env    *Environment
	config *rest.Config
	server *envtest.APIServer
	output *output

	mu      sync.Mutex
	stopped bool
}

const secondBinary = apiServerBinary + "-second"

// StartSecondAPIServer starts another API server and returns when it answers. There can be one at a time. The caller
// stops it before the Environment.
func (e *Environment) StartSecondAPIServer() (*SecondAPIServer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkStoppable(); err != nil {
		return nil, err
	}
	if e.inProcess != nil {
		return nil, errors.New("the in-process server has no second API server: set REAL=true to run kube-apiserver")
	}
	programs, err := findBinaries()
	if err != nil {
		return nil, err
	}
	path, err := e.supervision.wrap(secondBinary, programs.path(apiServerBinary))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(e.supervision.dir, "second")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("no folder for the second API server: %w", err)
	}
	first := e.envtest.ControlPlane.APIServer
	s := &SecondAPIServer{env: e, output: &output{}}
	s.server = &envtest.APIServer{
		Path: path, CertDir: dir, EtcdURL: e.envtest.ControlPlane.Etcd.URL,
		StartTimeout: startTimeout, StopTimeout: stopTimeout, Out: s.output, Err: s.output,
	}
	// Both trust the certificates of the same users.
	s.server.Authn = first.Authn
	s.server.Configure().Set("enable-priority-and-fairness", "false")
	if err := s.server.Start(); err != nil {
		return nil, fmt.Errorf("could not start the second API server: %w\nit printed last:\n%s", err, s.output.last())
	}
	s.config = rest.CopyConfig(e.config)
	s.config.Host = s.server.SecureServing.URL("https", "/").String()
	s.config.CAData = s.server.CA
	return s, nil
}

// Config returns the configuration of an administrator's client of this API server.
func (s *SecondAPIServer) Config() *rest.Config { return rest.CopyConfig(s.config) }

// ConfigOf returns the configuration of an administrator's client of the address, behind which there is one of the two
// API servers.
func (s *SecondAPIServer) ConfigOf(host string) *rest.Config {
	config := s.Config()
	config.Host = host
	config.CAData = slices.Concat(s.env.config.CAData, s.config.CAData)
	return config
}

// Pause stops the process until Resume, as on a machine that is too busy. Requests wait meanwhile.
func (s *SecondAPIServer) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets the process go on that Pause has stopped.
func (s *SecondAPIServer) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *SecondAPIServer) signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	content, err := os.ReadFile(s.env.supervision.pidFile(secondBinary))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// Stop ends the process. Further calls do nothing.
func (s *SecondAPIServer) Stop() error {
	if err := s.Resume(); err != nil && !errors.Is(err, errStopped) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return s.env.killed(secondBinary, s.server.Stop)
}
