package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// runningProcess runs a program for go-plugin. It is the only one who knows the process.
type runningProcess struct {
	command *exec.Cmd
	limits  Limits
	// folder is where the socket of the process has to be.
	folder string

	stdout, stderr *os.File
	// starting is the context of the start, and listens ends that the process is killed with it.
	starting context.Context
	listens  func() bool
	// done is closed when the process has ended, and ended says how, from then on.
	done  chan struct{}
	ended error
}

var _ runner.Runner = (*runningProcess)(nil)

// newProcess prepares a process. Its input is empty, and it has no environment but its own.
func newProcess(ctx context.Context, c Config, environment []string, folder string) *runningProcess {
	path, file := c.Program.Command()
	command := &exec.Cmd{Path: path, Args: []string{c.Program.Name}, Env: environment, Dir: folder}
	if file != nil {
		command.ExtraFiles = []*os.File{file}
	}
	command.SysProcAttr = ownGroup()
	return &runningProcess{
		command: command, limits: c.Limits, folder: folder, starting: ctx, done: make(chan struct{}),
	}
}

// Start starts the process.
func (p *runningProcess) Start(context.Context) error {
	stdout, toStdout, err := os.Pipe()
	if err != nil {
		return err
	}
	stderr, toStderr, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), toStdout.Close())
	}
	p.stdout, p.stderr = stdout, stderr
	p.command.Stdout, p.command.Stderr = toStdout, toStderr
	started := make(chan error)
	go p.run(started)
	err = <-started
	if err == nil {
		p.listens = context.AfterFunc(p.starting, func() { _ = p.Kill(p.starting) })
	}
	return errors.Join(err, toStdout.Close(), toStderr.Close())
}

// run starts the process, and waits for its end. It stays on one thread of the system: the process is killed when the
// thread that started it ends, so that it does not survive the operator.
func (p *runningProcess) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	if err := p.command.Start(); err != nil {
		p.ended = err
		started <- errors.Join(err, p.stdout.Close(), p.stderr.Close())
		return
	}
	limit(p.command.Process.Pid, p.limits)
	started <- nil
	// What it has started, and is still in its group, ends with it.
	p.ended = waitWithGroup(p.command)
	// A process that has left the group may keep the other ends of the pipes open.
	time.AfterFunc(leftOver, func() {
		_ = p.stdout.Close() // nobody needs what is read no more
		_ = p.stderr.Close()
	})
}

// leftOver is how long the output of a process is read after its end.
const leftOver = 100 * time.Millisecond

// Stdout has the line that says where the process listens.
func (p *runningProcess) Stdout() io.ReadCloser {
	return readCloser{&firstLine{from: &throttle{from: p.stdout, done: p.done}}, p.stdout}
}

// Stderr has what the process says.
func (p *runningProcess) Stderr() io.ReadCloser {
	return readCloser{&throttle{from: p.stderr, done: p.done}, p.stderr}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// Wait waits for the end of the process.
func (p *runningProcess) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.ended
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the process, and waits for that.
func (p *runningProcess) Kill(context.Context) error {
	if p.command.Process == nil {
		return nil
	}
	select {
	case <-p.done:
	default:
		killGroup(p.command.Process.Pid)
		_ = p.command.Process.Kill() // it may have left its group, or has ended
		<-p.done
	}
	return nil
}

// ID returns the process ID.
func (p *runningProcess) ID() string {
	if p.command.Process == nil {
		return ""
	}
	return strconv.Itoa(p.command.Process.Pid)
}

// Name returns the name of the program.
func (p *runningProcess) Name() string { return p.command.Args[0] }

// Diagnose adds nothing.
func (p *runningProcess) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address that the process has named. It is an error unless it is a socket in the folder that
// the process was given, so that a process cannot have the host connect to somebody else.
func (p *runningProcess) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || filepath.Dir(filepath.Clean(address)) != p.folder {
		return "", "", errors.New("it does not listen on a Unix socket in the folder that it was given")
	}
	info, err := os.Lstat(address)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return "", "", errors.New("it does not listen on the Unix socket that it has named")
	}
	return network, address, nil
}

// HostToPlugin returns no address: there is nothing of the host to connect to.
func (p *runningProcess) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("a plugin cannot connect to the host")
}

// endOf says in a stable text how a process has ended.
func endOf(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("it has exited")
	case errors.As(err, &exit):
		return fmt.Errorf("it has ended: %s", exit.ProcessState)
	}
	return err
}
