package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/espalier-dev/espalier/plugins/internal/process"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// SocketEnvironment is the environment variable that has [Serve] serve on a Unix socket of that path, as a sidecar
// does.
const SocketEnvironment = "ESPALIER_PLUGIN_SOCKET"

// Serve serves a plugin. It is all that the main function of a plugin has to call, and does not return: it ends the
// process when the host asks for that, and with a message if the plugin is not valid, or if nobody started it as one.
//
// With the environment variable [SocketEnvironment], it serves on that socket until the process is told to end by
// SIGTERM or an interrupt. A socket of that path that nobody listens on is replaced. The user and the group of the
// socket can connect to it.
func Serve(plugin Plugin) {
	if err := serve(plugin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(plugin Plugin) error {
	if err := plugin.Validate(); err != nil {
		return err
	}
	if socket := os.Getenv(SocketEnvironment); socket != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return serveOn(ctx, socket, plugin)
	}
	process.Serve(func(registrar grpc.ServiceRegistrar) {
		protocol.RegisterPluginServer(registrar, server{plugin: plugin})
	})
	return nil
}

// Register has a gRPC server serve a plugin, for a sidecar that serves other things by it too. [Serve] does all that
// most plugins need. The server has to serve the health of the service "plugin" as well. It returns an error if the
// plugin is not valid.
func Register(registrar grpc.ServiceRegistrar, plugin Plugin) error {
	if err := plugin.Validate(); err != nil {
		return err
	}
	protocol.RegisterPluginServer(registrar, server{plugin: plugin})
	return nil
}

// serveOn serves a plugin on a socket until the context ends.
func serveOn(ctx context.Context, socket string, plugin Plugin) error {
	listener, err := listen(ctx, socket)
	if err != nil {
		return fmt.Errorf("unable to serve on the socket %s: %w", socket, err)
	}
	grpcServer, healthy := grpc.NewServer(), health.NewServer()
	healthy.SetServingStatus(goplugin.GRPCServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(grpcServer, healthy)
	if err := Register(grpcServer, plugin); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, grpcServer.Stop)
	defer stop()
	if err := grpcServer.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("unable to serve on the socket %s: %w", socket, err)
	}
	return nil
}

// socketMode has the group connect as well: the host has a user of its own, and both have the group of the folder.
const socketMode = 0o660

// listen listens on a socket. One that an earlier process left is removed first.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if errors.Is(err, syscall.EADDRINUSE) {
		var dialer net.Dialer
		if connection, dialErr := dialer.DialContext(ctx, "unix", socket); dialErr == nil {
			_ = connection.Close()
			return nil, err
		}
		if err := os.Remove(socket); err != nil {
			return nil, err
		}
		listener, err = config.Listen(ctx, "unix", socket)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
