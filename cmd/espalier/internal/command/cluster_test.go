package command_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// runCluster runs "cluster start" until the function is called that it returns, and a client of the cluster.
func runCluster(t *testing.T, args ...string) (c client.Client, stop func()) {
	t.Helper()
	kubeConfig := filepath.Join(t.TempDir(), "kubeconfig")
	started := command.New(io.Discard, io.Discard)
	started.SetArgs(append([]string{"cluster", "start", "--kubeconfig", kubeConfig, "--no-workloads"}, args...))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- started.ExecuteContext(ctx) }()
	controlplanetest.Eventually(t, "there is no cluster", func(context.Context) error {
		config, err := clientcmd.BuildConfigFromFlags("", kubeConfig)
		if err == nil {
			c, err = client.New(config, client.Options{Scheme: resources.NewScheme()})
		}
		return err
	})
	return c, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the command ends with: %v", err)
		}
	}
}

// A cluster with a file has what the one before had.
func TestClusterStart(t *testing.T) {
	crd := resources.CRD()
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	crds, data := filepath.Join(t.TempDir(), "crds"), filepath.Join(t.TempDir(), "cluster.wal")
	if err := os.Mkdir(crds, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(crds, "widgets.yaml"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--crds", crds, "--data", data}
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	c, stop := runCluster(t, args...)
	if err := c.Create(t.Context(), widget); err != nil {
		t.Errorf("unable to create an object of a definition: %v", err)
	}
	stop()
	c, stop = runCluster(t, args...)
	defer stop()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), widget); err != nil {
		t.Errorf("the object is not there in the next cluster: %v", err)
	}
}

func TestClusterStartErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--crds", "/nonexistent"}, "/nonexistent"},
		{[]string{"--port", "70000"}, "--port is 70000, and must be between 0 and 65535"},
		{[]string{"--without", "Shop"}, `"Shop"`},
		{[]string{"now"}, `unknown command "now"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		c := command.New(io.Discard, io.Discard)
		c.SetArgs(append([]string{"cluster", "start"}, tc.args...))
		if err := c.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: the error is %v, want %q in it", tc.args, err, tc.want)
		}
		cancel()
	}
}
