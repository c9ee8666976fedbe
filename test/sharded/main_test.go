package sharded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs:              []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD(), sharder.Definition()},
	GarbageCollection: true,
}}

// The variables of the environment of a process that is a replica: which one, and how to reach the API server.
const (
	replicaVariable    = "ESPALIER_TEST_REPLICA"
	kubeconfigVariable = "ESPALIER_TEST_REPLICA_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if described := os.Getenv(replicaVariable); described != "" {
		if err := runReplica(described); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(plane.Main(m))
}

// runReplica runs a replica until the process is told to end, or is killed. For each line that it reads it prints its
// live memory in bytes.
func runReplica(described string) error {
	var r replica
	if err := json.Unmarshal([]byte(described), &r); err != nil {
		return err
	}
	ctrllog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfigVariable))
	if err != nil {
		return err
	}
	config.QPS = -1
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mgr, err := r.manager(ctx, config)
	if err != nil {
		return err
	}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(liveHeap())
		}
		os.Exit(1) // the process that has started this one is gone
	}()
	return mgr.Start(ctx)
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
