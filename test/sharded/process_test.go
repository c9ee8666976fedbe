package sharded_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

	mu      sync.Mutex
	process *process
	stopped bool
	// ended says how processes have ended that were not killed.
	ended []string
	done  chan struct{}
}

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
	first, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	go c.keep(first)
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("the processes of %s have ended %d times without being killed: %q", r.Name, len(c.ended), c.ended)
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
	p := &process{Cmd: exec.Command(program)}
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
		if !p.killed && !c.stopped {
			c.ended = append(c.ended, fmt.Sprintf("%v: %s", err, p.stderr.String()))
		}
		c.mu.Unlock()
		if p, err = c.start(); err != nil {
			c.mu.Lock()
			c.ended = append(c.ended, err.Error())
			c.mu.Unlock()
		}
	}
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
	p := c.process
	c.mu.Unlock()
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	timeout := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
	defer timeout.Stop()
	<-c.done
}

// ask asks the process for a number.
func (c *container) ask(what string) (answer int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.process.in, what); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(c.process.out, &answer)
	return answer, err
}
