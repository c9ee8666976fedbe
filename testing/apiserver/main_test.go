package apiserver_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/apiserver"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// tests are what a test binary has.
type tests func() int

func (run tests) Run() int { return run() }

// withFlags sets the flags for the test. One that is not named has its default.
func withFlags(t *testing.T, flags map[string]string) {
	t.Helper()
	for _, name := range []string{"rtesting.real", "rtesting.differential"} {
		value, ok := flags[name]
		if !ok {
			value = flag.Lookup(name).DefValue
		}
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := flag.Set(name, before); err != nil {
				t.Error(err)
			}
		})
	}
}

// kubeconfig writes one for the control plane.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	c.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// row runs a row that creates a ConfigMap, and reports whether a real API server answered: it says whose fields are
// whose.
func row(t *testing.T, virtualTime bool) (real bool) {
	t.Helper()
	scheme := resources.NewScheme()
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "gadget-uid"}}
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}, Data: map[string]string{"k": "v"},
	}
	create := func(ctx context.Context, _ *resources.Widget) error {
		created := child.DeepCopy()
		err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, created)
		real = real || len(created.ManagedFields) > 0
		return client.IgnoreAlreadyExists(err)
	}
	rtesting.NodeTests[*resources.Widget]{"creates a child": {
		Resource: widget, ExpectCreates: []client.Object{child}, VirtualTime: virtualTime,
	}}.RunNode(t, scheme, func() reconcilers.SubReconciler[*resources.Widget] {
		return &reconcilers.SyncReconciler[*resources.Widget]{Sync: create}
	})
	return real
}

func TestFlagsSayWhereRowsRun(t *testing.T) {
	config := plane.Config(t)
	options := apiserver.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()}}
	for name, test := range map[string]struct {
		flags   map[string]string
		virtual bool
		real    bool
	}{
		"in memory":    {},
		"on a cluster": {flags: map[string]string{"rtesting.real": kubeconfig(t, config)}, real: true},
		"in both of them": {flags: map[string]string{
			"rtesting.real": kubeconfig(t, config), "rtesting.differential": "true",
		}},
		"in virtual time": {flags: map[string]string{"rtesting.real": kubeconfig(t, config)}, virtual: true},
		"compared in virtual time": {flags: map[string]string{
			"rtesting.real": kubeconfig(t, config), "rtesting.differential": "true",
		}, virtual: true},
	} {
		t.Run(name, func(t *testing.T) {
			withFlags(t, test.flags)
			var real bool
			code := apiserver.Main(tests(func() int {
				real = row(t, test.virtual)
				return 7
			}), options)
			if code != 7 || real != test.real {
				t.Errorf("the code is %d, and it ran on a server: %v", code, real)
			}
		})
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	left := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), left, client.MatchingFields{"metadata.name": "child"}); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("%d objects are left behind", len(left.Items))
	}
}

func TestWithoutAServerNothingRuns(t *testing.T) {
	for name, test := range map[string]struct {
		real    string
		options apiserver.Options
	}{
		"no kubeconfig":  {real: filepath.Join(t.TempDir(), "none")},
		"no definitions": {real: kubeconfig(t, plane.Config(t)), options: apiserver.Options{CRDPaths: []string{"none"}}},
	} {
		t.Run(name, func(t *testing.T) {
			withFlags(t, map[string]string{"rtesting.real": test.real})
			ran := tests(func() int {
				t.Error("the tests ran")
				return 0
			})
			if code := apiserver.Main(ran, test.options); code != 1 {
				t.Errorf("the code is %d", code)
			}
		})
	}
}

// A control plane whose start fails leaves goroutines behind. So it is started in a process of its own, the test binary
// again.
func TestProgramsThatAreMissingAreNamed(t *testing.T) {
	const alone = "APISERVER_WITHOUT_PROGRAMS"
	if os.Getenv(alone) != "" {
		apiserver.Main(tests(func() int { return 0 }), apiserver.Options{})
		return
	}
	want := "set KUBEBUILDER_ASSETS to a folder with the programs etcd and kube-apiserver, such as setup-envtest makes"
	for _, folder := range []string{t.TempDir(), ""} {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-rtesting.real=envtest")
		command.Env = append(os.Environ(), alone+"=1", "KUBEBUILDER_ASSETS="+folder, "PATH=")
		output, _ := command.CombinedOutput()
		if !strings.Contains(string(output), want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
}
