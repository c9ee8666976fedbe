package projecttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/tracker"
)

// TestProjectsOfPlugins makes the project of a plugin as a user does, and does with it what a user does. Then an operator
// runs what was built, as its list says.
func TestProjectsOfPlugins(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	if !slices.Contains(chosenProjects(t), pluginProject) {
		t.Skip("it is not among the projects that " + projectsVariable + " chooses")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "databases")
	newProject(t, dir, "--plugin=database/my-sql", "--replace="+repository, "--license=MIT", "--owner=The owners")
	if files := run(t, dir, "gofmt", "-l", "."); files != "" {
		t.Errorf("not formatted: %s", files)
	}
	run(t, dir, "go", "mod", "tidy", "-diff")
	run(t, dir, "make", "test")
	build := []string{"build", "PLATFORM=" + goEnv(t, dir, "GOOS") + "/" + goEnv(t, dir, "GOARCH")}
	if os.Getenv(projectsVariable) != "all" {
		// As for the tests, so that not all packages are compiled anew.
		build = append(build, "BUILD_FLAGS=-ldflags=-w", "CGO_ENABLED="+goEnv(t, dir, "CGO_ENABLED"))
	}
	run(t, dir, "make", build...)
	expectKept(t, filepath.Join(dir, "bin/plugins"))
	for _, name := range []string{"program", "sidecar"} {
		patch := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(dir, "deploy", name+".yaml"))), patch); err != nil {
			t.Errorf("the patch %s is no Deployment: %v", name, err)
		}
	}
}

// goEnv returns what "go env" says of a variable.
func goEnv(t *testing.T, dir, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, dir, "go", "env", name))
}

// expectKept runs the program in a folder for a resource, and waits until it has the objects that the plugin gives.
func expectKept(t *testing.T, folder string) {
	t.Helper()
	owner := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blue", UID: "1", Generation: 1}}
	scheme := resources.NewScheme()
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, owner).Build()
	host := &plugins.Host{Folder: folder, List: filepath.Join(folder, "SHA256SUMS")}
	root := espalier.For(reconcilers.Config{
		Client: c, APIReader: c, Recorder: &record.FakeRecorder{}, Tracker: tracker.New(scheme, 0),
	}, plugins.Capability[*resources.Widget](host, "database", "my-sql").
		Creates(&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}).Reports(resources.WidgetChildReady))

	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.Background(), testr.New(t)))
	ended := make(chan error, 1)
	go func() { ended <- host.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the host has ended with %v, want no error", err)
		}
	}()
	key := client.ObjectKeyFromObject(owner)
	controlplanetest.Eventually(t, "the objects of the plugin", func(ctx context.Context) error {
		_, err := root.Reconcile(ctx, reconcilers.Request{NamespacedName: key})
		server := &appsv1.Deployment{}
		at := client.ObjectKey{Namespace: "default", Name: "blue-widget-my-sql"}
		if err = errors.Join(err, c.Get(ctx, at, server)); err != nil {
			return err
		}
		if image := server.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/my-sql:2" {
			return fmt.Errorf("the server has the image %s, want that of the newest version", image)
		}
		return c.Get(ctx, at, &corev1.Service{})
	})
}
