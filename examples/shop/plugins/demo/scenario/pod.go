package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/plugins"
)

// pod is what the pod of an operator has beside it: a folder with the program postgres, a list, and a sidecar.
type pod struct {
	// built is the folder with what was built, and path that of all that the pod has.
	built, path string
	// command starts the sidecar: rabbit.py, or where Python lacks grpcio the one in Go.
	command []string
	sidecar *exec.Cmd
	// asked counts the calls of the sidecar.
	asked atomic.Int64
	// process is the ID of the process of postgres that was started last, and killed that of the one that was killed.
	process atomic.Int64
	killed  int64
}

func (p *pod) folder() string  { return filepath.Join(p.path, "plugins") }
func (p *pod) program() string { return filepath.Join(p.folder(), "postgres") }
func (p *pod) list() string    { return filepath.Join(p.path, "SHA256SUMS") }
func (p *pod) socket() string  { return filepath.Join(p.path, "rabbit") }

// open makes a folder with postgres, and an empty list.
func (p *pod) open(ctx context.Context) (err error) {
	if p.path, err = os.MkdirTemp("", "demo"); err != nil {
		return fmt.Errorf("unable to make a folder for plugins: %w", err)
	}
	p.command = []string{filepath.Join(p.built, "rabbit")}
	// The Python of the system may have grpcio, and not the first one in the path.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import grpc, google.protobuf").Run() == nil {
			script, contract := filepath.Join(p.built, "rabbit.py"), filepath.Join(p.built, "espalier_plugins_v1.binpb")
			p.command = []string{python, script, contract}
			break
		}
	}
	return errors.Join(os.Mkdir(p.folder(), 0o700), p.listsNothing(ctx), p.puts("postgres")(ctx))
}

func (p *pod) close() error {
	return errors.Join(p.killsSidecar(context.Background()), os.RemoveAll(p.path))
}

// processID is in the line that postgres prints when it is started.
var processID = regexp.MustCompile(`process (\d+) serves`)

// run runs the host, whose log has what programs print. The pod is closed when the host has ended.
func (p *pod) run(host *plugins.Host, to logr.Logger) manager.Runnable {
	logger := funcr.New(func(_, line string) {
		to.Info(line)
		if match := processID.FindStringSubmatch(line); match != nil {
			id, _ := strconv.ParseInt(match[1], 10, 64) // it has digits
			p.process.Store(id)
		}
	}, funcr.Options{Verbosity: 1})
	return manager.RunnableFunc(func(ctx context.Context) error {
		return errors.Join(host.Start(log.IntoContext(ctx, logger)), p.close())
	})
}

// puts makes a program that was built the program postgres.
func (p *pod) puts(built string) demo.Action {
	return func(context.Context) error {
		content, err := os.ReadFile(filepath.Join(p.built, built))
		return errors.Join(err, replace(p.program(), content))
	}
}

// lists lists postgres as it is in the folder now.
func (p *pod) lists(context.Context) error {
	content, err := os.ReadFile(p.program())
	line := fmt.Sprintf("%x  postgres\tdatabase/*\n", sha256.Sum256(content))
	return errors.Join(err, replace(p.list(), []byte(line)))
}

func (p *pod) listsNothing(context.Context) error { return replace(p.list(), nil) }

// replace makes a file, or puts it into the place of the one that is there, by renaming it.
func replace(path string, content []byte) error {
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)) // the host leaves it alone
	return errors.Join(os.WriteFile(next, content, 0o700), os.Rename(next, path))
}

// startsSidecar starts the sidecar with more arguments, after the one before has ended.
func (p *pod) startsSidecar(args ...string) demo.Action {
	return func(ctx context.Context) error {
		if err := p.killsSidecar(ctx); err != nil {
			return err
		}
		command := exec.Command(p.command[0], slices.Concat(p.command[1:], args)...)
		command.Env = append(os.Environ(), plugins.SocketEnvironment+"="+p.socket())
		command.Stdout = p
		if err := command.Start(); err != nil {
			return fmt.Errorf("unable to start the sidecar: %w", err)
		}
		p.sidecar = command
		return nil
	}
}

// Write counts the lines that the sidecar prints, one for each call.
func (p *pod) Write(lines []byte) (int, error) {
	p.asked.Add(int64(bytes.Count(lines, []byte("\n"))))
	return len(lines), nil
}

// killsSidecar ends the sidecar as the system ends a process that has no memory left, and waits for that.
func (p *pod) killsSidecar(context.Context) error {
	if p.sidecar == nil {
		return nil
	}
	err := p.sidecar.Process.Kill()
	_ = p.sidecar.Wait() // it was killed
	p.sidecar = nil
	return err
}

// killsProgram ends postgres in the same way.
func (p *pod) killsProgram(context.Context) error {
	if p.killed = p.process.Load(); p.killed == 0 {
		return errors.New("postgres was not started")
	}
	return syscall.Kill(int(p.killed), syscall.SIGKILL)
}

// runsAnother holds when postgres was started again.
func (p *pod) runsAnother(context.Context) error {
	if id := p.process.Load(); id == p.killed {
		return fmt.Errorf("postgres is still the process %d", id)
	}
	return nil
}

// runsNone holds when postgres has ended.
func (p *pod) runsNone(context.Context) error {
	if id := p.process.Load(); !errors.Is(syscall.Kill(int(id), 0), syscall.ESRCH) {
		return fmt.Errorf("there is still the process %d of postgres", id)
	}
	return nil
}

// which says what the sidecar is.
func (p *pod) which() string { return "It is started by: " + strings.Join(p.command, " ") }
