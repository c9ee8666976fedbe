package cluster_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// shops is a folder with the definition of Shop.
const shops = "../../../examples/shop/config/crd"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	if path := os.Getenv(killedFile); path != "" {
		runKilled(path)
	}
	goleak.VerifyTestMain(m)
}

// start starts a cluster for a test.
func start(t testing.TB, env *cluster.Environment) *rest.Config {
	t.Helper()
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	return config
}

func newClient(t testing.TB, config *rest.Config, add ...func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError fails the test if an error has not all parts of a text.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want %q in it", err, part)
		}
	}
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(name), Data: map[string]string{"a": "1"}}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: objectMeta(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		},
	}}
}

// TestLife starts and stops an environment.
func TestLife(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{}
	if err := env.Stop(); err != nil {
		t.Errorf("stop before the start: %v", err)
	}
	_, err := env.AddUser(cluster.User{Name: "jane"}, nil)
	wantError(t, err, "call Start before")
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.Start()
	wantError(t, err, "started before")
	_, err = env.AddUser(cluster.User{}, nil)
	wantError(t, err, "no name")
	kubeConfig := env.KubeConfigPath
	if err := newClient(t, config).Create(t.Context(), configMap("a")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := env.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Dir(kubeConfig)); !os.IsNotExist(err) {
		t.Errorf("the folder of the kubeconfig is there after the stop: %v", err)
	}
	if _, err := rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(config.Host, "https://")); err == nil {
		_ = conn.Close()
		t.Error("somebody listens after the stop")
	}
}

// TestKubeConfig reads what the environment has written.
func TestKubeConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "below", "config")
	for range 2 { // The second cluster writes over the file of the first one.
		env := &cluster.Environment{KubeConfigPath: path}
		start(t, env)
		for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("the mode of %s is %o, want %o", path, got, want)
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := newClient(t, config).Create(t.Context(), configMap("a")); err != nil {
			t.Errorf("a client of the kubeconfig: %v", err)
		}
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the kubeconfig at a path of the user is gone after the stop: %v", err)
		}
	}
}

// TestStartFails has environments that cannot start. Nothing is left behind, which TestMain sees.
func TestStartFails(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n"
	theirs := write("kubeconfig", "apiVersion: v1\nkind: Config\n")
	for name, tc := range map[string]struct {
		env  *cluster.Environment
		want []string
	}{
		"a port in use": {
			&cluster.Environment{Address: listener.Addr().String()},
			[]string{"listen at Address", "address already in use"},
		},
		"an existing cluster": {&cluster.Environment{UseExistingCluster: new(true)}, []string{"UseExistingCluster", "use the Env"}},
		"Pods without workloads": {
			&cluster.Environment{Pods: func(*corev1.Pod) cluster.PodBehavior { return cluster.PodBehavior{} }},
			[]string{"set Workloads"},
		},
		"no address":           {&cluster.Environment{Address: "nowhere"}, []string{`Address "nowhere"`, "missing port"}},
		"all addresses":        {&cluster.Environment{Address: ":0"}, []string{`Address ":0"`, "set AllowOtherMachines"}},
		"another address":      {&cluster.Environment{Address: "192.0.2.1:0"}, []string{"set AllowOtherMachines"}},
		"another's kubeconfig": {&cluster.Environment{KubeConfigPath: theirs}, []string{theirs, "name another path"}},
		"a folder for a kubeconfig": {
			&cluster.Environment{KubeConfigPath: dir}, []string{dir, "name another path"},
		},
		"a folder that cannot be made": {
			&cluster.Environment{KubeConfigPath: filepath.Join(theirs, "config")}, []string{"KubeConfigPath", theirs},
		},
		"another's data file": {&cluster.Environment{DataFile: theirs}, []string{"DataFile", theirs, "name another file"}},
		"a folder for a data file": {
			&cluster.Environment{DataFile: dir}, []string{"DataFile", dir, "is a directory"},
		},
		"a path that is missing": {
			&cluster.Environment{CRDDirectoryPaths: []string{"missing"}, ErrorIfCRDPathMissing: true},
			[]string{"CRDDirectoryPaths", "missing"},
		},
		"a field that there is not": {
			&cluster.Environment{CRDDirectoryPaths: []string{write("field.yaml", "---\n"+head+"spec: {groop: a}\n")}},
			[]string{"field.yaml, document 1", `unknown field "spec.groop"`},
		},
		"a definition that is refused": {
			&cluster.Environment{CRDDirectoryPaths: []string{write("refused.yaml", head+"spec: {group: example.com, "+
				"scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true}]}\n")}},
			[]string{"refused.yaml, document 1", "spec.versions[0].schema.openAPIV3Schema: Required value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.env.KubeConfigPath
			_, err := tc.env.Start()
			wantError(t, err, append(tc.want, "start the cluster")...)
			if err := tc.env.Stop(); err != nil {
				t.Errorf("stop after a start that failed: %v", err)
			}
			if tc.env.KubeConfigPath != before || tc.env.Config != nil || tc.env.KubeConfig != nil {
				t.Errorf("a start that failed has set %q, %v", tc.env.KubeConfigPath, tc.env.Config)
			}
		})
	}
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "apiVersion: v1\nkind: Config\n" {
		t.Errorf("the file of somebody else is %q, %v", text, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".kubeconfig-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("there are files left: %v, %v", left, err)
	}
}

// TestOtherMachines listens at all addresses. A kubeconfig leads to one of this machine.
func TestOtherMachines(t *testing.T) {
	t.Parallel()
	config := start(t, &cluster.Environment{Address: "0.0.0.0:0", AllowOtherMachines: true})
	if !strings.HasPrefix(config.Host, "https://127.0.0.1:") {
		t.Errorf("the host is %s, want one of this machine", config.Host)
	}
	if err := newClient(t, config).Create(t.Context(), configMap("a")); err != nil {
		t.Error(err)
	}
}

// TestMissingPathsAreSkipped has a path of definitions that does not exist.
func TestMissingPathsAreSkipped(t *testing.T) {
	t.Parallel()
	config := start(t, &cluster.Environment{CRDDirectoryPaths: []string{"missing", shops}})
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(shopKind.GroupVersion().WithKind("ShopList"))
	if err := newClient(t, config).List(t.Context(), list); err != nil {
		t.Error(err)
	}
}

// TestNobodyIsTrusted has clients without credentials, and with those of another cluster.
func TestNobodyIsTrusted(t *testing.T) {
	t.Parallel()
	config, other := start(t, &cluster.Environment{}), start(t, &cluster.Environment{})
	for name, change := range map[string]func(c *rest.Config){
		"nobody":              func(c *rest.Config) { c.CertData, c.KeyData = nil, nil },
		"of another cluster":  func(c *rest.Config) { c.CertData, c.KeyData = other.CertData, other.KeyData },
		"the name of a user":  func(c *rest.Config) { c.CertData, c.KeyData, c.BearerToken = nil, nil, "admin" },
		"the name of a group": func(c *rest.Config) { c.CertData, c.KeyData, c.BearerToken = nil, nil, "system:masters" },
	} {
		c := rest.CopyConfig(config)
		change(c)
		http, err := rest.HTTPClientFor(c)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Get(c.Host + "/api/v1/namespaces")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != 401 {
			t.Errorf("%s: the answer is %s, want 401 Unauthorized", name, response.Status)
		}
	}
	c := rest.CopyConfig(config)
	c.CAData = other.CAData
	if http, err := rest.HTTPClientFor(c); err != nil {
		t.Fatal(err)
	} else if response, err := http.Get(c.Host); err == nil {
		_ = response.Body.Close()
		t.Error("a client trusts the certificate of another cluster")
	}
}

// TestUIDsDiffer compares those of an object in two clusters.
func TestUIDsDiffer(t *testing.T) {
	t.Parallel()
	uids := map[any]bool{}
	for range 2 {
		obj := configMap("a")
		if err := newClient(t, start(t, &cluster.Environment{})).Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		uids[obj.UID] = true
	}
	if len(uids) != 2 {
		t.Errorf("objects of two clusters have the UIDs %v", uids)
	}
}

// TestCRDsOfBothFields has a definition as an object and another one in a file.
func TestCRDsOfBothFields(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{CRDs: definitions(t), CRDDirectoryPaths: []string{shops}}
	before := env.CRDs[0].DeepCopy()
	c := newClient(t, start(t, env))
	for _, kind := range []string{"Shop", "Gizmo"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(shopKind.GroupVersion().WithKind(kind + "List"))
		if err := c.List(t.Context(), list); err != nil {
			t.Errorf("list %ss: %v", kind, err)
		}
	}
	if env.CRDs[0].ResourceVersion != before.ResourceVersion {
		t.Error("Start has changed the definition of the test")
	}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestAPIServerThatStops stops the API server and starts it again. A client goes on as before, and a watch breaks off.
func TestAPIServerThatStops(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{}
	c := newClient(t, start(t, env))
	if err := c.Create(t.Context(), configMap("kept")); err != nil {
		t.Fatal(err)
	}
	watch, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	read := func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(configMap("kept")), configMap("")) }
	for range 2 { // The second call does nothing.
		if err := env.StopAPIServer(); err != nil {
			t.Fatal(err)
		}
	}
	for range watch.ResultChan() { // It ends.
	}
	if err := read(); !utilnet.IsConnectionRefused(err) {
		t.Errorf("a stopped API server answered %v, want a refused connection", err)
	}
	for range 2 {
		if err := env.StartAPIServer(); err != nil {
			t.Fatal(err)
		}
	}
	if err := read(); err != nil {
		t.Errorf("after the start the answer is %v, want the object", err)
	}
	if err := (&cluster.Environment{}).StartAPIServer(); err == nil {
		t.Error("the API server of a cluster that was never started starts, want an error")
	}
}
