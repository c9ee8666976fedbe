package storytellingtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// RunOnExistingCluster runs the demo on a cluster that is there already, and interrupts it when it is in full swing:
// when it prints the text at. It has to have printed fact by then. What it has brought there is gone afterwards.
func RunOnExistingCluster(t *testing.T, config *rest.Config, demo storytelling.Demo, fact, at string) {
	t.Helper()
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBECONFIG", writeKubeconfig(t, config))
	before := objects(t, config)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interruptingWriter{at: at, interrupt: cancel}
	err := demo.Run(ctx, logr.Discard(), out)

	if !errors.Is(err, context.Canceled) {
		t.Errorf("the demo ended with %v", err)
	}
	for _, text := range []string{"on the cluster of the current kubeconfig", "✓ " + fact} {
		if !strings.Contains(out.text.String(), text) {
			t.Errorf("it did not print %q", text)
		}
	}
	for name := range objects(t, config) {
		if !before[name] {
			t.Errorf("left behind: %s", name)
		}
	}
	if t.Failed() {
		t.Log(out.text.String())
	}
}

// interruptingWriter interrupts whoever writes a certain text.
type interruptingWriter struct {
	text      bytes.Buffer
	at        string
	interrupt context.CancelFunc
}

func (w *interruptingWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.at)) {
		w.interrupt()
	}
	return w.text.Write(p)
}

// objects names the objects of those kinds that the demo makes in a cluster.
func objects(t *testing.T, config *rest.Config) map[string]bool {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&apiextensionsv1.CustomResourceDefinitionList{},
	} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			names[fmt.Sprintf("%T %s", obj, obj.(client.Object).GetName())] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// writeKubeconfig makes a kubeconfig of a client's configuration, and returns its path.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return path
}
