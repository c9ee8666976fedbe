package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// minLifetime is how long a program must run before the start counts as successful: it ends at once over a flag it does
// not know or a kubeconfig it cannot read.
const minLifetime = 200 * time.Millisecond

// process is a process that envtest does not know: kube-controller-manager, kube-scheduler or kwok.
type process struct {
	name   string
	path   string
	output *output
	// env is the environment; nil means that of this process.
	env []string
	// minLifetime is how long it must run before the start counts as successful.
	minLifetime time.Duration

	// cmd is nil before the start; ended is closed when the process has ended.
	cmd   *exec.Cmd
	ended chan struct{}

	mu       sync.Mutex
	stopping bool
	exit     error
}

func (p *process) start(ctx context.Context, args ...string) error {
	command := exec.Command(p.path, args...)
	command.Env, command.Stdout, command.Stderr = p.env, p.output, p.output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("could not start %s: %w", p.name, err)
	}
	p.cmd, p.ended = command, make(chan struct{})
	go func() {
		defer close(p.ended)
		p.finished(command.Wait())
	}()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(p.minLifetime):
	}
	return p.err()
}

// finished records the end of the process. It is no error if stop was called.
func (p *process) finished(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	p.exit = fmt.Errorf("%s ended by itself: %w\nit printed last:\n%s", p.name, err, p.output.last())
}

func (p *process) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// stop ends the process, which may have ended or never have been started, and returns the error of its end.
func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("could not kill %s: %w", p.name, err)
	}
	<-p.ended
	return p.err()
}
