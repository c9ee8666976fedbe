package plugins_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
)

// rawPlugin is a plugin that uses nothing but the contract, as one in another language does.
type rawPlugin struct {
	protocol.UnimplementedPluginServer
}

func (rawPlugin) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	return &protocol.DescribeResponse{Category: "database", Types: []*protocol.Type{{Name: "postgres"}}}, nil
}

func (rawPlugin) Dependents(
	_ context.Context, r *protocol.DependentsRequest,
) (*protocol.DependentsResponse, error) {
	object := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s-config"},
		"data": {"mode": "raw", "pid": "%d", "spec": %q}}`, r.GetOwner().GetName(), os.Getpid(), r.GetOwner().GetSpec())
	return &protocol.DependentsResponse{Outcome: &protocol.DependentsResponse_Dependents{
		Dependents: &protocol.Dependents{Items: []*protocol.Dependent{{
			Name: "config", ApiVersion: "v1", Kind: "ConfigMap", Object: []byte(object),
		}}},
	}}, nil
}

// serveRaw does what the contract asks of a program, and no more.
func serveRaw(options ...grpc.ServerOption) {
	if os.Getenv("ESPALIER_PLUGIN") != "dependents.v1" {
		os.Exit(1)
	}
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server, healthy := grpc.NewServer(options...), health.NewServer()
	healthy.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	protocol.RegisterPluginServer(server, rawPlugin{})
	fmt.Println("1|1|unix|" + socket + "|grpc")
	_ = server.Serve(listener) // it is killed
}

// neverEnds has a server answer no call that is not of the contract, such as the one that asks the program to end.
func neverEnds(any, grpc.ServerStream) error {
	select {}
}

// The contract is all that a plugin needs.
func TestPluginOfTheContractAlone(t *testing.T) {
	_, host := withPlugin(t, "raw")
	w := worldOf(t, host)
	w.ask("gadget", "value=x")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if !w.has(object, "gadget-config") || object.Data["spec"] != `{"fields":{"value":"x"}}` {
		t.Errorf("the object has %v, want the spec of the owner", object.Data)
	}
}
