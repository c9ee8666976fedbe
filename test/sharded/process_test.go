package sharded_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/demo"

	"k8s.io/client-go/rest"
)

// container has a process of a replica, and starts another one when it ends, as a kubelet does.
type container struct {
	replica    replica
	kubeconfig string
	// ctx is that of the processes, and end tells them to end.
	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	process *process
	stopped bool
	// failed says which processes have ended as none should.
	failed []string
	done   chan struct{}
}

// patience is how long a process may take to end, on a busy machine.
const patience = 3 * time.Minute

// process is one of a replica.
type process struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	killed bool
}

// writeKubeconfig returns the path of a file by which processes reach the API server.
func writeKubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	content, err := demo.Kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startContainer starts the process of a replica. It is told to end when the test ends.
func startContainer(t testing.TB, kubeconfig string, r replica) *container {
	t.Helper()
	c := &container{replica: r, kubeconfig: kubeconfig, done: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(context.Background())
	first, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	go c.keep(first)
	t.Cleanup(func() {
		c.stop()
		for _, failed := range c.failed {
			t.Errorf("a process of %s has failed: %s", r.Name, failed)
		}
	})
	return c
}

// start starts a process, unless the container is stopped.
func (c *container) start() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, nil
	}
	described, err := json.Marshal(c.replica)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{Cmd: exec.CommandContext(c.ctx, program)}
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	p.WaitDelay = patience
	p.Env = append(os.Environ(), replicaVariable+"="+string(described), kubeconfigVariable+"="+c.kubeconfig)
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.replica.Name, err)
	}
	c.process = p
	return p, nil
}

// keep starts a process again when it ends.
func (c *container) keep(p *process) {
	defer close(c.done)
	for p != nil {
		err := p.Wait()
		c.mu.Lock()
		said := p.stderr.String()
		if !p.mayEnd(said, c.stopped) {
			c.failed = append(c.failed, fmt.Sprintf("%v: %s", err, said))
		}
		if c.stopped && !p.killed && p.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			c.failed = append(c.failed, fmt.Sprintf("it has not ended within %v after it was told to: %s", patience, said))
		}
		c.mu.Unlock()
		if p, err = c.start(); err != nil {
			c.mu.Lock()
			c.failed = append(c.failed, err.Error())
			c.mu.Unlock()
		}
	}
}

// mayEnd reports whether a process that has said something may have ended: it was killed or told to, or it could not
// renew its Lease in time.
func (p *process) mayEnd(said string, stopped bool) bool {
	if strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") {
		return false
	}
	return p.killed || stopped || strings.Contains(said, "leader election lost")
}

// kill kills the process.
func (c *container) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process.killed = true
	_ = c.process.Process.Kill() // it may have ended
}

// stop tells the process to end, and waits until it has.
func (c *container) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.end()
	<-c.done
}

// liveHeap asks the process for its live memory in bytes.
func (c *container) liveHeap() (heap int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.process.in); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(c.process.out, &heap)
	return heap, err
}
