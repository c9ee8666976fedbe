// Command rabbit is a plugin for the capability queue/rabbit, as a sidecar. It does what rabbit.py does, for where
// there is no Python. Like that one, it has nothing of Espalier but the contract.
//
//	rabbit CONTRACT [--shared NAMESPACE] [--drops-all]
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// socketEnvironment is the environment variable with the path of the socket.
const socketEnvironment = "ESPALIER_PLUGIN_SOCKET"

func main() {
	shared := flag.String("shared", "", "the namespace of the broker, to put the definitions there")
	dropsAll := flag.Bool("drops-all", false, "take the place of another plugin for rabbit")
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rabbit CONTRACT [--shared NAMESPACE] [--drops-all]")
		os.Exit(2)
	}
	_ = flag.CommandLine.Parse(os.Args[2:]) // it ends the program on an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plugin := queue{shared: *shared, dropsAll: *dropsAll}
	if err := serve(ctx, os.Args[1], os.Getenv(socketEnvironment), plugin); err != nil {
		fmt.Fprintln(os.Stderr, "rabbit:", err)
		os.Exit(1)
	}
}

// serve serves the contract, and the health of the service "plugin", until the context ends.
func serve(ctx context.Context, contract, socket string, plugin queue) error {
	messages, err := readContract(contract)
	if err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("unable to remove the socket of an earlier process: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("unable to listen on the socket of %s: %w", socketEnvironment, err)
	}
	server, healthy := grpc.NewServer(), health.NewServer()
	healthy.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	server.RegisterService(messages.service(plugin), nil)
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(listener)
}
