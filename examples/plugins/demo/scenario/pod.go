package scenario

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/plugins"
)

// pod is what the pod of an operator has beside it: a folder with programs, their list, and a sidecar. It ends with the
// operator.
type pod struct {
	// path is the folder of all of these, and built the one with what was built.
	path, built string
	// command starts the sidecar. It is known once that was started.
	command []string
	sidecar *exec.Cmd
	// written is closed when the sidecar has ended, and all that it has written was read.
	written chan struct{}
	// asked counts the calls of the sidecar.
	asked atomic.Int64
}

var _ manager.Runnable = (*pod)(nil)

// newPod returns a pod with an empty folder, and an empty list.
func newPod(built string) (*pod, error) {
	path, err := os.MkdirTemp("", "demo")
	if err != nil {
		return nil, fmt.Errorf("unable to make a folder for plugins: %w", err)
	}
	p := &pod{path: path, built: built}
	return p, errors.Join(os.Mkdir(p.folder(), 0o700), p.writeList())
}

func (p *pod) folder() string { return filepath.Join(p.path, "plugins") }
func (p *pod) list() string   { return filepath.Join(p.path, "SHA256SUMS") }
func (p *pod) socket() string { return filepath.Join(p.path, "rabbit") }

// Start implements [manager.Runnable]. It ends the sidecar, and removes the folder, when the operator ends.
func (p *pod) Start(ctx context.Context) error {
	<-ctx.Done()
	return p.end()
}

func (p *pod) end() error { return errors.Join(p.kill(), os.RemoveAll(p.path)) }

// put puts a program that was built into the folder of the plugins.
func (p *pod) put(built, name string) error {
	content, err := os.ReadFile(filepath.Join(p.built, built))
	if err != nil {
		return err
	}
	// Files whose names begin with a dot do not count.
	next := filepath.Join(p.folder(), "."+name)
	if err := os.WriteFile(next, content, 0o700); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(p.folder(), name))
}

// writeList lists programs as they are in the folder now, as databases.
func (p *pod) writeList(names ...string) error {
	var lines strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(p.folder(), name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\tdatabase/*\n", sha256.Sum256(content), name)
	}
	next := p.list() + ".next"
	return errors.Join(os.WriteFile(next, []byte(lines.String()), 0o600), os.Rename(next, p.list()))
}

// run starts the sidecar with more arguments, after the one before has ended.
func (p *pod) run(ctx context.Context, args ...string) error {
	if err := p.kill(); err != nil {
		return err
	}
	if p.command == nil {
		p.command = sidecarIn(ctx, p.built)
	}
	command := exec.Command(p.command[0], slices.Concat(p.command[1:], args)...)
	command.Env = append(os.Environ(), plugins.SocketEnvironment+"="+p.socket())
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("unable to start the sidecar: %w", err)
	}
	p.sidecar, p.written = command, make(chan struct{})
	go p.count(stdout)
	return nil
}

// count counts the lines that a sidecar writes, one for each call.
func (p *pod) count(output io.Reader) {
	defer close(p.written)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		p.asked.Add(1)
	}
}

// kill ends the sidecar as the system ends a process that has no memory left, and waits for that.
func (p *pod) kill() error {
	if p.sidecar == nil {
		return nil
	}
	err := p.sidecar.Process.Kill()
	<-p.written
	_ = p.sidecar.Wait() // it was killed
	p.sidecar = nil
	return err
}

// sidecarIn returns the command that starts the plugin of RabbitMQ: the one in Python, or where that lacks grpcio the
// program in Go that has nothing but the contract, too.
func sidecarIn(ctx context.Context, built string) []string {
	contract := filepath.Join(built, "espalier_plugins_v1.binpb")
	if python := pythonWithGRPC(ctx); python != "" {
		return []string{python, filepath.Join(built, "rabbit.py"), contract}
	}
	return []string{filepath.Join(built, "rabbit"), contract}
}

// pythonWithGRPC returns a Python that has the packages grpcio and protobuf, or an empty text. The one of the system
// may have them, and not the first one in the path.
func pythonWithGRPC(ctx context.Context) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, name, "-c", "import grpc, google.protobuf").Run() == nil {
			return name
		}
	}
	return ""
}
