package stuck_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
}}

func TestMain(m *testing.M) {
	// Caches say in the log of the process why a watch does not start.
	log.SetLogger(processLog.logger())
	os.Exit(plane.Main(m))
}

var (
	eventually = controlplanetest.Eventually
	scheme     = newScheme()
	processLog = &lines{}
)

func newScheme() *runtime.Scheme {
	scheme := resources.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		panic(err) // the types are fixed when this is compiled
	}
	return scheme
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, line)
	}, funcr.Options{})
}

// operator is one that runs, with everything that docs/operating.md has one look at.
type operator struct {
	page    *page.Page
	metrics *prometheus.Registry
	log     *lines
	// outside is what the operator uses outside of the cluster: by the key of a Widget, a function that fails or waits.
	outside sync.Map
	stop    func()
}

// operatorLabel is a label of the resources of an operator of one story alone. Other operators leave them alone.
const operatorLabel = "operator"

// start runs an operator as a user until the test ends. It has a root of Widgets and one of Assemblies, and sees those
// that have the label with a name, or without a name those that do not have the label.
func start(t testing.TB, config *rest.Config, name string, change ...func(*ctrl.Options)) *operator {
	t.Helper()
	o := &operator{log: &lines{}, metrics: prometheus.NewRegistry()}
	selector, err := labels.Parse("!" + operatorLabel)
	if name != "" {
		selector, err = labels.Parse(operatorLabel + "=" + name)
	}
	if err != nil {
		t.Fatal(err)
	}
	failures := &reconcilers.WatchErrors{}
	options := ctrl.Options{
		Scheme: scheme, Logger: o.log.logger(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultWatchErrorHandler: failures.Handle, ByObject: map[client.Object]cache.ByObject{
			&resources.Widget{}: {Label: selector}, &resources.Assembly{}: {Label: selector},
		}},
	}
	options.Controller.SkipNameValidation = new(true)
	options.Controller.MaxConcurrentReconciles = 4
	for _, f := range change {
		f(&options)
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := metrics.New(metrics.Options{Registerer: o.metrics})
	if err != nil {
		t.Fatal(err)
	}
	o.page = page.New(page.Options{Access: page.OnLoopback(), Replica: "operator-0", Elected: mgr.Elected()})
	failures.Tell(counts, o.page)
	of := func(resource client.Object) reconcilers.Config {
		return reconcilers.NewConfig(mgr, resource, time.Hour).WithObserver(counts, o.page)
	}
	bundle := component.NewComponentRoot("bundle.example.com", resources.AssemblyGenerator(),
		component.Options[*resources.Assembly]{Config: of(&resources.Assembly{})})
	for _, root := range []interface {
		SetupWithManager(context.Context, reconcilers.Manager) error
	}{widgets(of(&resources.Widget{}), &o.outside), bundle} {
		if err := root.SetupWithManager(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		<-done // an operator that is stuck may end with an error
	})
	t.Cleanup(o.stop)
	return o
}

// hasStarted waits until the workers of both roots run.
func (o *operator) hasStarted(t testing.TB) {
	t.Helper()
	eventually(t, "it is not started", func(context.Context) error {
		if strings.Count(o.log.String(), "Starting workers") < 2 {
			return errors.New(o.log.String())
		}
		return nil
	})
}

// writer is the ClusterRole that lets the operator write, in the namespaces where it is bound. Elsewhere it may read.
const writer = "operator-writer"

// everything are rules for verbs on all that the operator works with.
func everything(verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps", "batch"}, Verbs: verbs,
		Resources: []string{
			"configmaps", "secrets", "namespaces", "persistentvolumeclaims", "pods", "deployments",
			"jobs",
		},
	}, {
		APIGroups: []string{resources.GroupVersion.Group, "routes.example.com", "events.k8s.io", "coordination.k8s.io"},
		Resources: []string{"*"}, Verbs: []string{"*"},
	}, {
		APIGroups: []string{"*"}, Verbs: []string{"*"},
		Resources: []string{"customresourcedefinitions", "orders", "events"},
	}}
}

// operatorUser is who the operator of most stories is. It may read everywhere.
const operatorUser = "operator"

// startShared runs the operator of most stories.
func startShared(t testing.TB) *operator {
	t.Helper()
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: writer}, Rules: everything("*")})
	o := start(t, user(t, operatorUser, everything("get", "list", "watch")), "")
	o.hasStarted(t)
	return o
}

// user returns the config of a user with rules.
func user(t testing.TB, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	create(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects(name),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		})
	config := plane.Config(t)
	config.Impersonate.UserName = name
	return config
}

func subjects(user string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
}

// writes lets a user write in a namespace.
func writes(user, namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Subjects: subjects(user),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: writer},
	}
}

// live returns the client of an administrator, which reads past every cache.
func live(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates objects, and deletes them when the test has ended: it may run again.
func create(t testing.TB, objects ...client.Object) {
	t.Helper()
	c := live(t)
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
}
