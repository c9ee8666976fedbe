package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// startOperator runs an operator of widgets whose metrics server has its page, for those that a role allows. It returns
// the URL of the page.
func startOperator(t *testing.T, env *cluster.Environment) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: resources.NewScheme(), Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true)},
		Metrics: metricsserver.Options{
			BindAddress: address, SecureServing: true,
			FilterProvider: page.KeepToken(filters.WithAuthenticationAndAuthorization),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	trees := page.New(page.Options{Access: page.Reviews(mgr.GetClient()), Replica: "replica-0", Elected: mgr.Elected()})
	if err := mgr.AddMetricsServerExtraHandler("/espalier/", trees); err != nil {
		t.Fatal(err)
	}
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		Name: "Widgets", Config: reconcilers.NewConfig(mgr, &resources.Widget{}, 0).WithObserver(trees),
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Name: "Count", Sync: func(context.Context, *resources.Widget) error { return nil },
		},
	}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	runUntilCleanup(t, mgr.Start)
	controlplanetest.Eventually(t, "the operator does not listen", func(context.Context) error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		_ = connection.Close()
		return nil
	})
	return "https://" + address + "/espalier/"
}

// runUntilCleanup runs something that ends with its context.
func runUntilCleanup(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ends with: %v", err)
		}
	})
}

// openPage runs the command, and returns the address that it prints.
func openPage(t *testing.T, args ...string) string {
	t.Helper()
	reader, writer := io.Pipe()
	failed := make(chan error, 1)
	runUntilCleanup(t, func(ctx context.Context) error {
		c := command.New(writer, io.Discard)
		c.SetArgs(append([]string{"page"}, args...))
		err := c.ExecuteContext(ctx)
		failed <- err
		_ = writer.Close()
		return err
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("the command ends with: %v", <-failed)
	}
	_, at, _ := strings.Cut(line, "The page is at ")
	at, _, _ = strings.Cut(at, " ")
	return at
}

func newCluster(t *testing.T) (*cluster.Environment, client.Client) {
	t.Helper()
	env := &cluster.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
	}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("the cluster ends with: %v", err)
		}
	})
	c, err := client.New(env.Config, client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

// createViewer creates a ServiceAccount that may see the page, and get widgets in one namespace.
func createViewer(t *testing.T, c client.Client, name, namespace string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}}
	meta := metav1.ObjectMeta{Name: name}
	inNamespace := metav1.ObjectMeta{Namespace: namespace, Name: name}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/espalier/*", "/none/*"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref("ClusterRole"), Subjects: subjects},
		&rbacv1.Role{ObjectMeta: inNamespace, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{resources.GroupVersion.Group}, Resources: []string{"widgets"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: inNamespace, RoleRef: ref("Role"), Subjects: subjects},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// The page that a browser shows is what the user of the token may see.
func TestPageOfAURL(t *testing.T) {
	env, c := newCluster(t)
	at := startOperator(t, env)
	for _, name := range []string{"mine", "foreign"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns-" + name}}
		widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: name}}
		for _, obj := range []client.Object{namespace, widget} {
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	createViewer(t, c, "viewer", "ns-mine")
	createViewer(t, c, "other", "ns-foreign")
	open := openPage(t, at, "--kubeconfig", env.KubeConfigPath, "--operator-insecure", "--service-account", "viewer")
	browser := newBrowser(t)

	if status, _ := browser.get(t, strings.Split(open, "?")[0]); status != http.StatusUnauthorized {
		t.Errorf("without the key the answer is %d, want %d", status, http.StatusUnauthorized)
	}
	status, body := browser.get(t, open)
	if status != http.StatusOK || !strings.Contains(body, "replica-0") {
		t.Fatalf("the answer is %d, want the overview:\n%s", status, body)
	}
	resource := func(namespace, name string) string {
		return strings.Split(open, "?")[0] + "resource?root=" + rootOf(t, body) + "&namespace=" + namespace + "&name=" + name
	}
	for name, want := range map[string]bool{"mine": true, "foreign": false} {
		controlplanetest.Eventually(t, "the tree is not as it should be", func(context.Context) error {
			_, shown := browser.get(t, resource("ns-"+name, name))
			if got := strings.Contains(shown, "Count"); got != want {
				return fmt.Errorf("the tree of %s is shown is %v, want %v:\n%s", name, got, want, shown)
			}
			return nil
		})
	}
}

// What is not a request of the user's own browser gets no answer with the user's rights.
func TestPageRefuses(t *testing.T) {
	env, c := newCluster(t)
	at := startOperator(t, env)
	createViewer(t, c, "viewer", "default")
	open := openPage(t, at, "--kubeconfig", env.KubeConfigPath, "--operator-insecure", "--service-account", "default/viewer")
	browser := newBrowser(t)
	if status, body := browser.get(t, open); status != http.StatusOK {
		t.Fatalf("the answer is %d, want the overview:\n%s", status, body)
	}
	for name, change := range map[string]func(r *http.Request){
		"another name of the host":  func(r *http.Request) { r.Host = "attacker.example.com" },
		"a page of another origin":  func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example.com") },
		"a picture of another page": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if status, _ := browser.get(t, open, change); status != http.StatusForbidden {
			t.Errorf("%s: the answer is %d, want %d", name, status, http.StatusForbidden)
		}
	}
}

// Errors say what to do.
func TestPageErrors(t *testing.T) {
	env, c := newCluster(t)
	at := startOperator(t, env)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nobody"}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	createViewer(t, c, "viewer", "default")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no token", []string{at, "--operator-insecure"}, "the operator does not know who you are"},
		{"no right", []string{at, "--operator-insecure", "--service-account=nobody"}, "you may not see the page"},
		{"no page", []string{strings.Replace(at, "espalier", "none", 1), "--operator-insecure", "--service-account=viewer"},
			"there is no page at /none/: --operator-path says"},
		{"a certificate of nobody", []string{at, "--service-account=viewer"}, "certificate signed by unknown authority"},
		{"no encryption", []string{"http://operator.example.com/espalier/"}, "is not encrypted, and your token would be sent"},
		{"another user", []string{at, "--operator-insecure", "--as=jane"}, `it cannot be opened as "jane"`},
		{"no such account", []string{at, "--service-account=none"}, "unable to create a token of the ServiceAccount default/none"},
		{"no such deployment", []string{"deployment/none"}, `deployments.apps "none" not found`},
		{"nothing", nil, "one TARGET is needed, not 0"},
		{"no target", []string{"none"}, `"none" is no target: it is as deployment/NAME`},
		{"no such kind", []string{"job/none"}, `"job" is no kind of an operator`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c := command.New(io.Discard, io.Discard)
			c.SetArgs(append([]string{"page", "--kubeconfig", env.KubeConfigPath}, tc.args...))
			if err := c.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

// browser keeps cookies, as one does.
type browser struct{ client http.Client }

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{http.Client{Jar: jar, Transport: transport, Timeout: time.Minute}}
}

func (b *browser) get(t *testing.T, at string, changes ...func(*http.Request)) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(request)
	}
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// rootOf returns the parameter that names the first root that a page links to.
func rootOf(t *testing.T, body string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, "root?root=")
	if !found {
		t.Fatalf("the page links to no root:\n%s", body)
	}
	id, _, _ := strings.Cut(rest, `"`)
	id, _, _ = strings.Cut(id, "&")
	unescaped, err := url.QueryUnescape(id)
	if err != nil {
		t.Fatal(err)
	}
	return url.QueryEscape(unescaped)
}

// tree prints what the page knows of a resource, from the same operator and as the same user.
func TestTree(t *testing.T) {
	env, c := newCluster(t)
	at := startOperator(t, env)
	for _, name := range []string{"shops", "others"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "corner"}}
		for _, obj := range []client.Object{namespace, widget} {
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	createViewer(t, c, "viewer", "shops")
	tree := func(args ...string) (string, error) {
		var out strings.Builder
		tree := command.New(&out, io.Discard)
		tree.SetArgs(append([]string{
			"tree", "--operator", at, "--operator-insecure", "--kubeconfig", env.KubeConfigPath,
			"--service-account", "default/viewer",
		}, args...))
		err := tree.ExecuteContext(t.Context())
		return out.String(), err
	}
	controlplanetest.Eventually(t, "the tree is not printed", func(context.Context) error {
		got, err := tree("widget/corner", "-n", "shops")
		want := "Widget shops/corner: Unchanged after "
		if err != nil || !strings.HasPrefix(got, want) || !strings.Contains(got, "└─ SyncReconciler \"Count\"  Unchanged") {
			return fmt.Errorf("tree prints\n%s, error %v, want %q and the node Count", got, err, want)
		}
		return nil
	})
	if got, err := tree("widget/corner", "-n", "shops", "-o", "json"); err != nil ||
		!strings.Contains(got, `"name": "shops/corner"`) {
		t.Errorf("tree -o json prints\n%s, error %v, want the resource", got, err)
	}
	if got, err := tree("widget/corner", "-n", "others"); err != nil || !strings.Contains(got, "you may not see it") {
		t.Errorf("tree prints\n%s, error %v, want that the user may not see the resource", got, err)
	}
	for _, tc := range []struct{ target, want string }{
		{"widget/nobody", "knows no widget shops/nobody"}, {"gadget/corner", "knows no gadget"}, {"corner", "is no resource"},
	} {
		if _, err := tree(tc.target, "-n", "shops"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("tree %s: the error is %v, want %q in it", tc.target, err, tc.want)
		}
	}
}
