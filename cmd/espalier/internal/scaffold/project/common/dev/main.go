// Command dev runs the operator on a cluster in its process, with the sample: for development, and for a first look.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/common/operator"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

const sample = "config/samples/placeholder.yaml"

func main() {
	kubeconfig := flag.String("write-kubeconfig", filepath.Join("tmp", "kubeconfig"), "where the kubeconfig is written")
	data := flag.String("data", "", "a file that keeps the objects; without it, they are gone when the program ends")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(*kubeconfig, *data); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, data string) error {
	if err := os.MkdirAll(filepath.Dir(kubeconfig), 0o755); err != nil {
		return err
	}
	env := &cluster.Environment{
		CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true,
		KubeConfigPath: kubeconfig, DataFile: data, Workloads: true,
		//scaffold:if webhooks
		WebhookInstallOptions: cluster.WebhookInstallOptions{Paths: []string{"config/webhook/manifests.yaml"}},
		//scaffold:end
	}
	return cluster.Run(ctrl.SetupSignalHandler(), env, func(ctx context.Context, config *rest.Config) error {
		options := operator.Options{}
		//scaffold:if webhooks
		options.WebhookHost = env.WebhookInstallOptions.LocalServingHost
		options.WebhookPort = env.WebhookInstallOptions.LocalServingPort
		options.WebhookCertDir = env.WebhookInstallOptions.LocalServingCertDir
		//scaffold:end
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		sampled := make(chan error, 1)
		go func() {
			err := createSample(ctx, config)
			if err != nil {
				cancel()
			}
			sampled <- err
		}()
		err := operator.Run(ctx, config, options)
		cancel()
		return errors.Join(err, <-sampled)
	})
}

// createSample creates the sample, as a user would.
func createSample(ctx context.Context, config *rest.Config) error {
	content, err := os.ReadFile(sample)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &object.Object); err != nil {
		return fmt.Errorf("%s: %w", sample, err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	//scaffold:if namespaced
	if object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
	//scaffold:end
	err = create(ctx, c, object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("unable to create the sample: %w", err)
	}
	fmt.Printf("The sample is there:\n\n    kubectl get placeholders.group.example.test -A\n\n")
	return nil
}

// create creates an object. A webhook does not answer before the operator serves it.
func create(ctx context.Context, c client.Client, object client.Object) error {
	for {
		err := c.Create(ctx, object)
		if !apierrors.IsInternalError(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
