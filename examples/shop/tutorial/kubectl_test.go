package tutorial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

var plane controlplanetest.Shared

// TestMain runs the tests, or kubectl if that is the name of this program.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "kubectl" {
		os.Exit(plane.Main(m))
	}
	if err := kubectl(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// useCluster has the reader's commands use a control plane, and has a kubectl among them.
func (r *reader) useCluster() {
	r.t.Helper()
	if r.kubeconfig != "" {
		return
	}
	config := plane.Config(r.t)
	r.kubeconfig = filepath.Join(r.t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, r.kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "KUBECONFIG="+r.kubeconfig)
	program, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(r.bin, "kubectl")); err != nil {
		r.t.Fatal(err)
	}
}

// kubectl does what the page needs of kubectl: "apply -f FILE", where a folder and "-" are files too, and
// "get KIND NAME -o yaml".
func kubectl(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	switch {
	case len(args) == 3 && args[0] == "apply" && args[1] == "-f":
		return applyFile(ctx, c, args[2])
	case len(args) == 5 && args[0] == "get" && args[3] == "-o" && args[4] == "yaml":
		return printObject(ctx, c, config, args[1], args[2])
	default:
		return fmt.Errorf("this kubectl does not know %q", args)
	}
}

func applyFile(ctx context.Context, c client.Client, name string) error {
	if name == "-" {
		return applyAll(ctx, c, os.Stdin)
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return applyAll(ctx, c, bytes.NewReader(content))
	})
}

func applyAll(ctx context.Context, c client.Client, manifests io.Reader) error {
	decoder := yaml.NewYAMLOrJSONDecoder(manifests, 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if obj.GetNamespace() == "" && obj.GetKind() != "CustomResourceDefinition" {
			obj.SetNamespace("default")
		}
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("kubectl"))
		if err != nil {
			return err
		}
		fmt.Printf("%s/%s applied\n", strings.ToLower(obj.GetKind()), obj.GetName())
	}
}

func printObject(ctx context.Context, c client.Client, config *rest.Config, resource, name string) error {
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(discovered)
	if err != nil {
		return err
	}
	kind, err := restmapper.NewDiscoveryRESTMapper(groups).KindFor(schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, obj); err != nil {
		return err
	}
	obj.SetManagedFields(nil)
	content, err := sigsyaml.Marshal(obj)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(content)
	return err
}
