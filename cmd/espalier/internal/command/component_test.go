package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/release"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// The scripts run on a cluster that they share, each in a namespace of its own, which is $NS. They have three
// commands more:
//
//	espalier CODE ARGS...	runs the command, which has to end with the exit code
//	complete ARGS...	asks for completions of the last argument
//	api VERB ...		does something as another client: apply FILE, patch KIND/NAME PATCH,
//				status KIND/NAME FILE, delete KIND/NAME, get KIND/NAME, none KIND/NAME
func TestScripts(t *testing.T) {
	config := plane.Config(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			t := env.T().(testing.TB)
			env.Values[testKey{}] = t
			namespace := plane.Namespace(t)
			env.Setenv("NS", namespace)
			env.Setenv("CORPUS", corpus(t))
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, ".kubeconfig"))
			return writeKubeConfig(config, namespace, env.Getenv("KUBECONFIG"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"espalier": runScripted, "complete": complete, "api": runAPI,
		},
	})
}

// testKey is the key of the test of a script, which is a testing.TB.
type testKey struct{}

func testOf(ts *testscript.TestScript) testing.TB { return ts.Value(testKey{}).(testing.TB) }

// corpus is the folder of the generators, with charts and kustomizations.
func corpus(t testing.TB) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "generator"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeKubeConfig writes a kubeconfig of a user.
func writeKubeConfig(config *rest.Config, namespace, file string) error {
	content := clientcmdapi.NewConfig()
	content.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: namespace}
	content.CurrentContext = "test"
	return clientcmd.WriteToFile(*content, file)
}

// runScripted runs the command in this process.
func runScripted(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("espalier needs an exit code")
	}
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	if args = args[1:]; args[0] == "component" {
		args = append(args, "--kubeconfig", ts.Getenv("KUBECONFIG"))
	}
	for i := range args {
		if strings.HasPrefix(args[i], "./") {
			args[i] = ts.MkAbs(args[i])
		}
	}
	c := command.New(ts.Stdout(), ts.Stderr())
	c.SetArgs(args)
	err = c.ExecuteContext(context.Background())
	if err != nil && err.Error() != "" {
		fmt.Fprintf(ts.Stderr(), "espalier: %s\n", strings.ReplaceAll(err.Error(), ts.Getenv("WORK")+"/", ""))
	}
	if got := command.ExitCode(err); got != code {
		ts.Fatalf("espalier %s: the exit code is %d, want %d: %v", strings.Join(args, " "), got, code, err)
	}
}

// complete asks for completions, as a shell does.
func complete(ts *testscript.TestScript, _ bool, args []string) {
	c := command.New(ts.Stdout(), ts.Stderr())
	c.SetArgs(slices.Concat([]string{"__complete", args[0], "--kubeconfig", ts.Getenv("KUBECONFIG")}, args[1:]))
	ts.Check(c.ExecuteContext(context.Background()))
}

// runAPI does something in the cluster as somebody else.
func runAPI(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("api needs a verb and an object")
	}
	config, err := clientcmd.BuildConfigFromFlags("", ts.Getenv("KUBECONFIG"))
	ts.Check(err)
	ctx := context.Background()
	c, err := release.NewCluster(ctx, config)
	ts.Check(err)
	if args[0] == "apply" {
		objects, err := manifest.Read(args[1], strings.NewReader(ts.ReadFile(args[1])))
		ts.Check(err)
		for _, object := range objects {
			var namespaced bool
			// A type that was just defined is served soon.
			controlplanetest.Eventually(testOf(ts), "the type is not served", func(context.Context) (err error) {
				namespaced, err = c.IsObjectNamespaced(object)
				return err
			})
			if namespaced && object.GetNamespace() == "" {
				object.SetNamespace(ts.Getenv("NS"))
			}
			ts.Check(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody")))
		}
		return
	}
	kind, name, _ := strings.Cut(args[1], "/")
	object := &unstructured.Unstructured{}
	gvk, err := c.KindFor(kind)
	ts.Check(err)
	object.SetGroupVersionKind(gvk)
	object.SetName(name)
	namespaced, err := c.IsObjectNamespaced(object)
	ts.Check(err)
	if namespaced {
		object.SetNamespace(ts.Getenv("NS"))
	}
	switch args[0] {
	case "patch":
		patch, err := yaml.YAMLToJSON([]byte(args[2]))
		ts.Check(err)
		ts.Check(c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody")))
	case "status":
		patch, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[2])))
		ts.Check(err)
		ts.Check(c.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody")))
	case "delete":
		ts.Check(c.Delete(ctx, object))
	case "get":
		ts.Check(c.Get(ctx, client.ObjectKeyFromObject(object), object))
		content, err := yaml.Marshal(object.Object)
		ts.Check(err)
		_, err = ts.Stdout().Write(content)
		ts.Check(err)
	case "none":
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrs.IsNotFound(err) {
			ts.Fatalf("%s is there, or cannot be read, and want none: %v", args[1], err)
		}
	default:
		ts.Fatalf("api has no verb %q", args[0])
	}
}

// Each command that waits has a line of help, and each page of the help says what the exit codes are.
func TestComponentHelp(t *testing.T) {
	var out bytes.Buffer
	c := command.New(&out, &out)
	c.SetArgs([]string{"component", "--help"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apply", "delete", "list", "status", "Exit codes are 0 for ready"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help has no %q:\n%s", want, out.String())
		}
	}
}

// A broken connection is one line, and no file is looked for that is not named.
func TestComponentWithoutCluster(t *testing.T) {
	manifests := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(manifests, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "shop", manifests}, {"delete", "shop"}, {"list"}, {"status", "shop"},
	} {
		var out bytes.Buffer
		c := command.New(&out, &out)
		c.SetArgs(slices.Concat([]string{"component"}, args, []string{"--server", "https://127.0.0.1:1", "--kubeconfig", os.DevNull}))
		err := c.ExecuteContext(t.Context())
		if command.ExitCode(err) != 1 || strings.Count(err.Error(), "\n") > 0 ||
			!strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%q: the error is %v, want one line with the address", args, errors.Unwrap(err))
		}
	}
}

// Without rights each command is one line that names what is missing. What was done until then is finished by somebody
// who has them.
func TestComponentWithoutRights(t *testing.T) {
	r := newTrial(t)
	nobody, err := plane.Environment(t).User("nobody-of-" + r.namespace)
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeConfig(nobody, r.namespace, theirs); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) { return runAs(t, theirs, args...) }
	check := func(want string, args ...string) {
		t.Helper()
		out, err := run(args...)
		if command.ExitCode(err) != 1 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want the exit code 1 and one line with %q:\n%s", args, err, want, out)
		}
	}
	check("leases", "apply", "shop", r.manifests)
	check("secrets", "list")
	check("secrets", "delete", "shop")
	r.allow(t, "nobody-of-"+r.namespace,
		rbacv1.PolicyRule{
			APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "leases"}, Verbs: []string{"*"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}})
	controlplanetest.Eventually(t, "the rights do not count", func(context.Context) error {
		_, err := run("list")
		return err
	})
	check("configmaps", "apply", "shop", r.manifests)
	if r.get(t, 0) != nil {
		t.Errorf("the first object exists, want that it was refused")
	}
	r.makeReady(t)
	if out, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput(); err != nil {
		t.Errorf("an administrator ends with %v, want that the component becomes ready:\n%s", err, out)
	}
}

// runAs runs the command about components in this process, with a kubeconfig.
func runAs(t *testing.T, kubeConfig string, args ...string) (string, error) {
	var out bytes.Buffer
	c := command.New(&out, &out)
	c.SetArgs(append([]string{"component", "--kubeconfig", kubeConfig}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// allow gives a user rights in the namespace.
func (r *trial) allow(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: user}, Rules: rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	binding.Subjects = []rbacv1.Subject{{Kind: "User", Name: user}}
	for _, object := range []client.Object{role, binding} {
		if err := r.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// Who may not read the objects of a component is told from when it is what is shown, and that it is not known how they
// are.
func TestStatusWithoutRights(t *testing.T) {
	r := newTrial(t)
	r.makeReady(t)
	if out, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput(); err != nil {
		t.Fatalf("apply ends with %v:\n%s", err, out)
	}
	reader, err := plane.Environment(t).User("reader-of-" + r.namespace)
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeConfig(reader, r.namespace, theirs); err != nil {
		t.Fatal(err)
	}
	r.allow(t, "reader-of-"+r.namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}})
	const want = " is shown as it was [0-9a-z]+ ago, and not as it is: unable to read ConfigMap .*/wave-0, .*: forbidden"
	controlplanetest.Eventually(t, "the rights do not count", func(context.Context) error {
		_, err := runAs(t, theirs, "list")
		return err
	})
	if out, err := runAs(t, theirs, "list"); err != nil || !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("list ends with %v, want %q:\n%s", err, want, out)
	}
	out, err := runAs(t, theirs, "status", "shop")
	if command.ExitCode(err) != 1 || !regexp.MustCompile(want).MatchString(err.Error()) ||
		!strings.Contains(out, "shop is Ready") {
		t.Errorf("status ends with %v, want the exit code 1 and %q:\n%s", err, want, out)
	}
}
