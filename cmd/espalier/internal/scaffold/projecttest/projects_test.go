package projecttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// repository is the folder of this repository.
const repository = "../../../../.."

// project is a combination of options. Each pair of values of two fields is in one of the projects at least, but for
// more.
type project struct {
	component                                string
	namespaced, defaulting, validating, long bool
	spdx                                     bool
	// more are further flags.
	more []string
}

var projects = []project{
	{"", true, false, false, false, false, nil},
	{"chart", false, true, true, true, true, nil},
	{"kustomization", true, true, true, true, false, nil},
	{"dummy", false, false, true, false, true, nil},
	{"code", false, true, false, true, true, nil},
	{"chart", true, true, true, false, true, nil},
	{"chart", false, false, false, true, false, nil},
	{"dummy", true, true, false, true, false, nil},
	{"kustomization", false, false, false, false, true, nil},
	{"", false, true, true, true, true, nil},
	{"code", true, false, true, false, false, nil},
	{"", true, true, true, false, false, []string{
		"--version=v1", "--plural=shopping", "--module=example.com/operators/shop/v2", "--operator-name=shops",
		"--image=localhost:5000/shops/operator:1.0", "--owner=Shops", "--license-header=testdata/header.txt",
		"--go-version=1.26.1",
	}},
}

// kind returns the kind of the project, and its group, which is before or after "apps" in the order of roles.
func (p project) kind() schema.GroupVersionKind {
	if p.long {
		return schema.GroupVersionKind{Group: "a.example.com", Version: "v1alpha1", Kind: "HTTPProxyConfiguration"}
	}
	return schema.GroupVersionKind{Group: "shop.example.com", Version: "v1alpha1", Kind: "Shop"}
}

func (p project) flags() []string {
	flags := []string{
		"--group=" + p.kind().Group, "--kind=" + p.kind().Kind, "--component=" + p.component,
		fmt.Sprintf("--namespaced=%t", p.namespaced), fmt.Sprintf("--defaulting-webhook=%t", p.defaulting),
		fmt.Sprintf("--validating-webhook=%t", p.validating), "--replace=" + repository,
	}
	if p.spdx {
		flags = append(flags, "--owner=The owners", "--license=Apache-2.0")
	}
	return append(flags, p.more...)
}

func (p project) String() string {
	return fmt.Sprintf("%s,namespaced=%t,defaulting=%t,validating=%t,long=%t,spdx=%t,more=%t",
		cmp.Or(p.component, "tree"), p.namespaced, p.defaulting, p.validating, p.long, p.spdx, len(p.more) > 0)
}

// TestPairs: each pair of values is in one of the projects.
func TestPairs(t *testing.T) {
	seen := map[string]bool{}
	values := func(p project) []string {
		return strings.Split(strings.TrimSuffix(p.String(), fmt.Sprintf(",more=%t", len(p.more) > 0)), ",")
	}
	all := make([]map[string]bool, len(values(projects[0])))
	for _, p := range projects {
		for i, a := range values(p) {
			if all[i] == nil {
				all[i] = map[string]bool{}
			}
			all[i][a] = true
			for _, b := range values(p)[:i] {
				seen[a+" "+b] = true
			}
		}
	}
	for i := range all {
		for j := range i {
			for a := range all[i] {
				for b := range all[j] {
					if !seen[a+" "+b] {
						t.Errorf("no project has %s and %s", a, b)
					}
				}
			}
		}
	}
}

// TestProjects makes projects as a user does, and does with each what a user does: those of chosenProjects. If these
// are all, staticcheck looks at some of them as well.
func TestProjects(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	all, chosen := os.Getenv(projectsVariable) == "all", []project{}
	for _, i := range chosenProjects(t) {
		if i < len(projects) {
			chosen = append(chosen, projects[i])
		}
	}
	generator := strings.TrimSpace(run(t, repository, "go", "-C", "hack/tools", "tool", "-n", "controller-gen"))
	checker := strings.TrimSpace(run(t, repository, "go", "-C", "hack/tools", "tool", "-n", "analyze"))
	for _, p := range chosen {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "shop")
			newProject(t, dir, p.flags()...)
			if files := run(t, dir, "gofmt", "-l", "."); files != "" {
				t.Errorf("not formatted: %s", files)
			}
			run(t, dir, "go", "mod", "tidy", "-diff")
			run(t, dir, "git", "init", "-q")
			run(t, dir, "git", "add", ".")
			run(t, dir, "make", "generate", "manifests", "CONTROLLER_GEN="+generator)
			if changed := run(t, dir, "git", "diff"); changed != "" {
				t.Errorf("the generated files are others than those that it began with:\n%s", changed)
			}
			// The templates are checked by "make check". Few have code that is not compiled there.
			if all && p.defaulting && p.validating && !p.namespaced {
				run(t, dir, checker, "./...")
			}
			run(t, dir, "go", "vet", "./...")
			run(t, dir, "sh", "-c", "go test -vet=off -ldflags=-w $(go list ./... | grep -v /story)")
			run(t, dir, "go", "test", "-vet=off", "-ldflags=-w", "./story", "-simulation.budget=2s")
			p.expectReady(t, startDev(t, dir))
		})
	}
}

// newProject runs "espalier new".
func newProject(t *testing.T, dir string, flags ...string) {
	t.Helper()
	out := &bytes.Buffer{}
	c := command.New(out, out)
	c.SetArgs(append([]string{"new", dir}, flags...))
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("espalier new %s: %v\n%s", strings.Join(flags, " "), err, out)
	}
}

func run(t *testing.T, dir, program string, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, arguments...)
	c.Dir, c.Env = dir, environment()
	errs := &bytes.Buffer{}
	c.Stderr = errs
	output, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", c, err, output, errs)
	}
	return string(output)
}

// environment is that of a user, who has not called make of this repository.
func environment() []string {
	return append(os.Environ(), "GOWORK=off", "MAKEFLAGS=", "MAKELEVEL=")
}

var exported = regexp.MustCompile(`export KUBECONFIG='(.*)'`)

// startDev does what "make run" does, until the test ends, and returns a client of its cluster. It is not make itself,
// which fails when it is interrupted.
func startDev(t *testing.T, dir string) client.Client {
	t.Helper()
	script := run(t, dir, "make", "-n", "run")
	c := exec.CommandContext(t.Context(), "sh", "-ec", script)
	c.Dir, c.Env = dir, environment()
	kubeconfig, _ := demotest.StartProgram(t, c, exported)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// expectReady waits until the sample is ready.
func (p project) expectReady(t *testing.T, c client.Client) {
	t.Helper()
	kind := p.kind()
	if len(p.more) > 0 {
		kind.Version = "v1"
	}
	controlplanetest.Eventually(t, "the sample is ready", func(ctx context.Context) error {
		status, _, err := readyOf(ctx, c, kind, p.namespaced)
		if err == nil && status != "True" {
			err = fmt.Errorf("Ready is %q", status)
		}
		return err
	})
}

// readyOf returns the condition Ready of the sample, empty if it is not about the present generation.
func readyOf(
	ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespaced bool,
) (status, reason string, err error) {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(kind)
	key := client.ObjectKey{Name: "sample"}
	if namespaced {
		key.Namespace = "default"
	}
	if err := c.Get(ctx, key, sample); err != nil && !meta.IsNoMatchError(err) {
		return "", "", err
	}
	conditions, _, err := unstructured.NestedSlice(sample.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, ok := condition.(map[string]any)
		if ok && fields["type"] == "Ready" && fields["observedGeneration"] == sample.GetGeneration() {
			return fmt.Sprint(fields["status"]), fmt.Sprint(fields["reason"]), nil
		}
	}
	return "", "", err
}
