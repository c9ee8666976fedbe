package cluster_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// TestRun runs operators that end with an error, and one whose cluster does not start.
func TestRun(t *testing.T) {
	t.Parallel()
	env, failure := &cluster.Environment{CRDDirectoryPaths: []string{shops}}, errors.New("failure")
	err := cluster.Run(t.Context(), env, func(ctx context.Context, config *rest.Config) error {
		written, err := clientcmd.BuildConfigFromFlags("", env.KubeConfigPath)
		if err != nil {
			return err
		}
		if err := newClient(t, config).Create(ctx, configMap("a")); err != nil {
			return err
		}
		if err := newClient(t, written).Delete(ctx, configMap("a")); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("the error is %v, want that of the operator", err)
	}
	if _, err := os.Stat(env.KubeConfigPath); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is there in the end: %v", err)
	}
	err = cluster.Run(t.Context(), &cluster.Environment{Address: "nowhere"}, func(context.Context, *rest.Config) error {
		t.Error("the operator runs without a cluster")
		return nil
	})
	wantError(t, err, "start the cluster", "nowhere")
}
