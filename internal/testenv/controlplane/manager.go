package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// minLifetime is how long kube-controller-manager must run before the start counts as successful: it ends at once over
// a flag it does not know or a kubeconfig it cannot read.
const minLifetime = 200 * time.Millisecond

// controllerManager is a process of kube-controller-manager.
type controllerManager struct {
	path   string
	output *output

	// cmd is nil before the start; ended is closed when the process has ended.
	cmd   *exec.Cmd
	ended chan struct{}

	mu       sync.Mutex
	stopping bool
	exit     error
}

// startManager runs the controllers as an administrator, because no test is about their permissions.
func (e *Environment) startManager(ctx context.Context, controllers []string, options Options) error {
	user, err := e.envtest.AddUser(envtest.User{Name: "controller-manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("could not add the user of kube-controller-manager: %w", err)
	}
	content, err := user.KubeConfig()
	if err != nil {
		return fmt.Errorf("no kubeconfig for kube-controller-manager: %w", err)
	}
	kubeconfig := filepath.Join(e.supervision.dir, "controller-manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	return e.manager.start(ctx,
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--cert-dir="+e.supervision.dir,
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	)
}

func (m *controllerManager) start(ctx context.Context, args ...string) error {
	m.cmd = exec.Command(m.path, args...)
	m.cmd.Stdout, m.cmd.Stderr = m.output, m.output
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.cmd.Start(); err != nil {
		m.cmd = nil
		return fmt.Errorf("could not start kube-controller-manager: %w", err)
	}
	m.ended = make(chan struct{})
	go func() {
		defer close(m.ended)
		m.finished(m.cmd.Wait())
	}()
	select {
	case <-m.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(minLifetime):
	}
	return m.err()
}

// finished records the end of the process. It is no error if stop was called.
func (m *controllerManager) finished(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping {
		return
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	m.exit = fmt.Errorf("kube-controller-manager ended by itself: %w\nit printed last:\n%s", err, m.output.last())
}

func (m *controllerManager) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exit
}

// stop kills the process, which may have ended or never have been started, and returns the error of its end.
func (m *controllerManager) stop() error {
	if m.cmd == nil {
		return nil
	}
	m.mu.Lock()
	m.stopping = true
	m.mu.Unlock()
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("could not kill kube-controller-manager: %w", err)
	}
	<-m.ended
	return m.err()
}
