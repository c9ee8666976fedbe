package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/program"

	"github.com/go-logr/logr"
	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Limits bound what a plugin may use.
type Limits struct {
	// Start is how long a process may take until it listens, and Answer how many bytes a message of it may have.
	Start  time.Duration
	Answer int
	// Memory is how many bytes of memory the process may have that it does not share; 0 for no bound.
	Memory int64
}

// Config says how a process is run.
type Config struct {
	Program *program.Program
	// Environment is that of the process, as in "NAME=value". It has no other variables but those of the handshake.
	Environment []string
	Limits      Limits
	Log         logr.Logger
}

// Plugin is a connection to a plugin. Stop ends it.
type Plugin struct {
	*grpc.ClientConn
	// process is nil for a plugin that somebody else runs. Then lost is closed when the connection is lost.
	process *runningProcess
	lost    chan struct{}
	folder  string
	// cancel ends what the connection is used for in the background, and background waits for that.
	cancel     context.CancelFunc
	background sync.WaitGroup
}

// Start runs a program, and connects to it. If the context ends before it has, the process is killed.
func Start(ctx context.Context, c Config) (*Plugin, error) {
	folder, err := os.MkdirTemp("", "espalier-")
	if err != nil {
		return nil, fmt.Errorf("unable to make a folder for its socket: %w", err)
	}
	p := &Plugin{folder: folder}
	address, err := p.run(ctx, c)
	if err != nil {
		return nil, errors.Join(err, p.end())
	}
	if err := p.connect(address, c.Limits, &lines{log: c.Log}); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// run starts the process, and returns the path of its socket.
func (p *Plugin) run(ctx context.Context, c Config) (string, error) {
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: handshake,
		Plugins:         goplugin.PluginSet{pluginName: connection{}},
		RunnerFunc: func(_ hclog.Logger, wanted *exec.Cmd, folder string) (runner.Runner, error) {
			p.process = newProcess(ctx, c, append(wanted.Env, c.Environment...), folder)
			return p.process, nil
		},
		StartTimeout:     c.Limits.Start,
		Stderr:           &lines{log: c.Log},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: p.folder},
	})
	address, err := client.Start()
	if err == nil && p.process.listens() {
		return address.String(), nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if p.process != nil && p.process.hasEnded() {
		return "", endOf(p.process.ended)
	}
	return "", errors.New(message.Stable(err.Error()))
}

// hasEnded reports whether the process has ended, or does so at once.
func (p *runningProcess) hasEnded() bool {
	select {
	case <-p.done:
		return p.command.ProcessState != nil && p.command.ProcessState.ExitCode() >= 0
	default:
		return false
	}
}

// Attach connects to a plugin that somebody else runs, and that listens on a socket. It does not reattach by go-plugin,
// which would add nothing but that the plugin is asked to end when the connection is closed.
func Attach(socket string, limits Limits) (*Plugin, error) {
	p := &Plugin{lost: make(chan struct{})}
	if err := p.connect(socket, limits, nil); err != nil {
		return nil, err
	}
	return p, nil
}

// connect connects to a socket. What the process writes by the connection is written to output, unless that is nil.
func (p *Plugin) connect(socket string, limits Limits, output *lines) error {
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limits.Answer), grpc.MaxCallSendMsgSize(limits.Answer)),
		// A plugin may say how the client behaves, unless that is refused.
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(maxHeaders),
	)
	if err != nil {
		return fmt.Errorf("unable to connect to the socket %s: %w", socket, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.ClientConn, p.cancel = connection, cancel
	if output != nil {
		p.background.Go(func() { copyOutput(ctx, connection, output) })
	}
	if p.lost != nil {
		p.background.Go(func() { p.awaitLoss(ctx) })
	}
	return nil
}

// awaitLoss waits until the connection is lost. Whoever listens on the socket then may be another plugin.
func (p *Plugin) awaitLoss(ctx context.Context) {
	for was := p.GetState(); p.WaitForStateChange(ctx, was); {
		is := p.GetState()
		if was == connectivity.Ready && is != connectivity.Ready {
			close(p.lost)
			return
		}
		was = is
	}
}

// maxHeaders is how many bytes the headers of an answer may have.
const maxHeaders = 16 << 10

// Check returns an error if the plugin does not say that it serves.
func (p *Plugin) Check(ctx context.Context) error {
	answer, err := grpc_health_v1.NewHealthClient(p).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	if err != nil {
		return err
	}
	if status := answer.GetStatus(); status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it says that it is %s", status)
	}
	return nil
}

// Done is closed when the process has ended, or the connection to one that somebody else runs.
func (p *Plugin) Done() <-chan struct{} {
	if p.process == nil {
		return p.lost
	}
	return p.process.done
}

// End says how the plugin has ended, once Done is closed.
func (p *Plugin) End() error {
	if p.process == nil {
		return errors.New("the connection to it has ended")
	}
	return endOf(p.process.ended)
}

// graceful is how long a process may take to end when it is asked to.
const graceful = 2 * time.Second

// Stop ends the connection and the process: it is asked to end, and killed if it does not. Stop waits for that.
func (p *Plugin) Stop() error {
	if p.process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), graceful)
		err := p.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
		if status.Code(err) == codes.Unimplemented {
			cancel() // there is nothing to wait for
		}
		select {
		case <-p.process.done:
		case <-ctx.Done():
		}
		cancel()
	}
	return p.end()
}

// end lets go of all that there is of a plugin.
func (p *Plugin) end() error {
	var err error
	if p.process != nil {
		err = p.process.Kill(context.Background())
	}
	if p.ClientConn != nil {
		p.cancel()
		err = errors.Join(err, p.Close())
		p.background.Wait()
	}
	if p.folder != "" {
		err = errors.Join(err, os.RemoveAll(p.folder))
	}
	return err
}
