package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/plugintest"
)

// contract is the contract of plugins, for languages that read it when they run.
const contract = "../../../../plugins/proto/espalier_plugins_v1.binpb"

// owner returns a shop with queues.
func owner(names ...string) *v1.Shop {
	shop := &v1.Shop{
		TypeMeta:   metav1.TypeMeta{APIVersion: "shop.example.com/v1", Kind: "Shop"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "books"},
	}
	shop.Spec.Queue = &v1.Queue{Type: "rabbit", Names: names}
	return shop
}

func wanted(definitions string) []*plugins.Dependent {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "books-queue"}}
	service.Spec.Type = corev1.ServiceTypeExternalName
	service.Spec.ExternalName = "rabbit.messaging.svc.cluster.local"
	config := &corev1.ConfigMap{ObjectMeta: service.ObjectMeta, Data: map[string]string{"definitions.json": definitions}}
	return []*plugins.Dependent{plugins.Owns("broker", service), plugins.Owns("definitions", config)}
}

// rows are the same for both programs.
var rows = plugintest.Rows{
	"two queues": {Owner: owner("orders", "mails"), Want: wanted(`{"queues":[` +
		`{"durable":true,"name":"orders","vhost":"market.books"},{"durable":true,"name":"mails","vhost":"market.books"}` +
		`],"vhosts":[{"name":"market.books"}]}`)},
	"no queue": {Owner: owner(), Want: wanted(`{"queues":[],"vhosts":[{"name":"market.books"}]}`)},
	"a name that is none": {
		Owner: owner("orders", "Mails", "-"),
		WantProblem: "queue.names has 'Mails', which is no name of a queue, " +
			"queue.names has '-', which is no name of a queue",
	},
}

// dropping is for a program that takes the place of another one.
var dropping = plugintest.Rows{
	"in the place of another one": {
		Owner: owner(), Want: append(wanted(`{"queues":[],"vhosts":[{"name":"market.books"}]}`), plugins.DropsAll()),
	},
}

func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "rabbit")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	rows.RunSidecar(t, start(t, program))
	dropping.RunSidecar(t, start(t, program, "--drops-all"))
}

func TestPython(t *testing.T) {
	python := pythonWithGRPC(t)
	rows.RunSidecar(t, start(t, python, "rabbit.py", contract))
	dropping.RunSidecar(t, start(t, python, "rabbit.py", contract, "--drops-all"))
}

// pythonWithGRPC returns the path of a Python that has the package grpcio, and skips the test if there is none.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import grpc, google.protobuf").Run() == nil {
			return name
		}
	}
	t.Skip("there is no Python with grpcio and protobuf (Debian: apt-get install python3-grpcio python3-protobuf)")
	return ""
}

// start starts a sidecar with arguments, until the test ends, and returns its socket.
func start(t *testing.T, program string, args ...string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "socket")
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), plugins.SocketEnvironment+"="+socket)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	return socket
}
