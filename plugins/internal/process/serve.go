// Package process runs plugins as processes of their own, and connects to them. It is built on
// github.com/hashicorp/go-plugin, and bounds what a process can do to the host: how much it writes, where the host
// connects to, how long it takes, and what it leaves behind.
package process

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

const (
	// protocolVersion is the version of the contract.
	protocolVersion = 1
	// pluginName is the name by which go-plugin knows the service.
	pluginName = "dependents"
)

// handshake tells a program that a host has started it.
var handshake = goplugin.HandshakeConfig{
	ProtocolVersion: protocolVersion, MagicCookieKey: "ESPALIER_PLUGIN", MagicCookieValue: "dependents.v1",
}

// connection is the plugin of go-plugin, on both sides.
type connection struct {
	goplugin.NetRPCUnsupportedPlugin
	// register registers the service in the process of the plugin.
	register func(registrar grpc.ServiceRegistrar)
}

var _ goplugin.GRPCPlugin = connection{}

// GRPCServer registers the service.
func (c connection) GRPCServer(_ *goplugin.GRPCBroker, server *grpc.Server) error {
	if c.register == nil {
		return errors.New("this is the side of the host")
	}
	c.register(server)
	return nil
}

// GRPCClient returns the connection to the process of the plugin.
func (c connection) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// Serve serves in the process of a plugin until the host asks it to end.
func Serve(register func(registrar grpc.ServiceRegistrar)) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         goplugin.PluginSet{pluginName: connection{register: register}},
		GRPCServer:      goplugin.DefaultGRPCServer,
		Logger:          hclog.NewNullLogger(),
	})
}
