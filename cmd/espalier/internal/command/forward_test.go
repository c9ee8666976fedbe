package command_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// nodes stands in for the nodes of a cluster, which forward ports of pods: all else is passed on to the cluster. The
// ports are those of this machine.
type nodes struct {
	t *testing.T

	mu sync.Mutex
	// asked are the paths at which ports were forwarded.
	asked []string
}

// kubeConfig serves the cluster with nodes, and returns the path of a kubeconfig.
func (n *nodes) kubeConfig(env *cluster.Environment) string {
	n.t.Helper()
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		n.t.Fatal(err)
	}
	at, err := url.Parse(env.Config.Host)
	if err != nil {
		n.t.Fatal(err)
	}
	cluster := httputil.NewSingleHostReverseProxy(at)
	cluster.Transport = transport
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/portforward") {
			n.forward(w, r)
			return
		}
		cluster.ServeHTTP(w, r)
	}))
	n.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	path := filepath.Join(n.t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, InsecureSkipTLSVerify: true}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", Namespace: "shop-system"}}, CurrentContext: "c",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// forward answers by SPDY alone, as a kubelet that is old.
func (n *nodes) forward(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no WebSocket", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	n.asked = append(n.asked, r.URL.Path)
	n.mu.Unlock()
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		n.t.Error(err)
		return
	}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			// Nothing is wrong.
			go func() { _ = s.Close() }()
			return nil
		}
		go n.copy(s, s.Headers().Get(corev1.PortHeader))
		return nil
	})
	if connection != nil {
		<-connection.CloseChan()
	}
}

func (n *nodes) copy(s httpstream.Stream, port string) {
	defer s.Reset()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		n.t.Error(err)
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, s)
		_ = to.Close()
	}()
	_, _ = io.Copy(s, to)
}

// The page of the pod that leads is opened through the API server.
func TestPageOfADeployment(t *testing.T) {
	env, c := newCluster(t)
	at := startOperator(t, env)
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(at, "https://"), "/espalier/"))
	if err != nil {
		t.Fatal(err)
	}
	createViewer(t, c, "viewer", "default")
	createReplicas(t, c, "operator-a", "operator-b", "operator-c")
	n := &nodes{t: t}
	open := openPage(t, "deployment/operator", "--kubeconfig", n.kubeConfig(env), "--operator-port", port,
		"--service-account", "default/viewer")
	status, body := newBrowser(t).get(t, open)
	if status != http.StatusOK || !strings.Contains(body, "replica-0") {
		t.Errorf("the answer is %d, want the overview:\n%s", status, body)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	const want = "[/api/v1/namespaces/shop-system/pods/operator-b/portforward]"
	if got := fmt.Sprint(n.asked); got != want {
		t.Errorf("ports were forwarded by %s, want %s: the pod that leads", got, want)
	}
}

// createReplicas creates the pods of a Deployment. The first is not ready, and all others are; the second one leads.
func createReplicas(t *testing.T, c client.Client, names ...string) {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop-system", Name: name, Labels: map[string]string{"app": "operator"}}
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator"}}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-system"}},
		&appsv1.Deployment{ObjectMeta: meta("operator"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: meta("").Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta("").Labels}, Spec: spec},
		}},
		&coordinationv1.Lease{ObjectMeta: meta("shops"), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(names[1] + "_0c1d"),
		}},
	}
	for _, name := range names {
		objects = append(objects, &corev1.Pod{ObjectMeta: meta(name), Spec: spec})
	}
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if pod, ok := obj.(*corev1.Pod); ok && pod.Name != names[0] {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := c.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
}
