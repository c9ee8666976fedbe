package controlplane

import (
	"errors"
	"fmt"
	"time"
)

// errNotOurs is the error of stopping or starting the API server of an existing cluster.
var errNotOurs = errors.New("the API server of an existing cluster is not ours to stop or start")

// errStopped is the error of stopping or starting the API server after Stop.
var errStopped = errors.New("the control plane was stopped")

// StopAPIServer kills the API server, as a crash of its machine would: requests in flight fail, watches break off. etcd
// and the controllers keep running. Clients get "connection refused" until StartAPIServer. It does nothing while the
// API server is down.
func (e *Environment) StopAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkStoppable(); err != nil || e.down {
		return err
	}
	if err := e.stopAPIServer(); err != nil {
		return err
	}
	e.down = true
	return nil
}

// StartAPIServer starts the API server that StopAPIServer has stopped and returns when it answers. Address,
// certificates, users and data are what they were. It does nothing while the API server is up.
func (e *Environment) StartAPIServer() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkStoppable(); err != nil || !e.down {
		return err
	}
	if e.inProcess != nil {
		if err := e.inProcess.StartAPIServer(); err != nil {
			return err
		}
	} else if err := e.envtest.ControlPlane.APIServer.Start(); err != nil {
		return fmt.Errorf("could not start the API server again: %w\nkube-apiserver printed last:\n%s", err,
			e.apiServer.last())
	}
	e.down = false
	return nil
}

// checkStoppable returns an error if the API server must not be stopped or started. The lock is held.
func (e *Environment) checkStoppable() error {
	switch {
	case e.existing:
		return errNotOurs
	case e.stopped:
		return errStopped
	}
	return nil
}

func (e *Environment) stopAPIServer() error {
	if e.inProcess != nil {
		return e.inProcess.StopAPIServer()
	}
	return e.killed(apiServerBinary, e.envtest.ControlPlane.APIServer.Stop)
}

// killed kills the process of that name and waits until envtest notices. A graceful stop would gain nothing: etcd's
// data is removed anyway, and an API server has none. stop fails until envtest notices that the process is gone.
func (e *Environment) killed(name string, stop func() error) error {
	if err := e.supervision.kill(name); err != nil {
		return err
	}
	var err error
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err = stop(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("could not stop %s: %w", name, err)
}
