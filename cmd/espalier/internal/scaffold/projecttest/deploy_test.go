package projecttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

// TestDeployment: what the kustomization and the chart deploy is accepted by an API server, has no right to
// everything, and runs as pod security "restricted" asks.
func TestDeployment(t *testing.T) {
	c, err := client.New(plane.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name  string
		flags []string
	}{
		{"plain", nil},
		{"webhooks", []string{
			"--defaulting-webhook", "--validating-webhook", "--namespaced=false", "--component=chart",
		}},
		{"validating", []string{"--validating-webhook", "--component=dummy"}},
	} {
		dir := filepath.Join(t.TempDir(), p.name)
		flags := append([]string{"--group=" + p.name + ".example.com", "--kind=Shop", "--operator-name=" + p.name,
			"--skip-tidy", "--replace=" + repository}, p.flags...)
		newProject(t, dir, flags...)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-system"}}
		if err := c.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		for how, objects := range map[string][]*unstructured.Unstructured{
			"kustomization": kustomization(t, filepath.Join(dir, "config")),
			"chart":         chart(t, filepath.Join(dir, "chart"), namespace.Name),
		} {
			t.Run(p.name+" by "+how, func(t *testing.T) {
				for _, object := range objects {
					checkObject(t, c, object)
				}
				isComplete(t, how, objects, len(p.flags) > 0)
			})
		}
	}
}

// kustomization builds the kustomization in a folder.
func kustomization(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(manifests))
}

// chart renders a chart as "helm template" does.
func chart(t *testing.T, dir, namespace string) []*unstructured.Unstructured {
	t.Helper()
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(namespace, "-system")
	release := common.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true}
	values, err := commonutil.ToRenderValues(loaded, map[string]any{"replicas": 2}, release, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for name, manifest := range files {
		if !strings.HasSuffix(name, ".tpl") {
			objects = append(objects, parse(t, manifest)...)
		}
	}
	return objects
}

func parse(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), len(manifests)+1)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("%v\n%s", err, manifests)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// checkObject has the API server check an object.
func checkObject(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	if object.GroupVersionKind().Group == "cert-manager.io" {
		return
	}
	applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	err := c.Apply(t.Context(), applied, client.DryRunAll, client.FieldOwner("test"))
	if err != nil {
		t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
	for _, rule := range rules {
		verbs, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "verbs")
		groups, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "apiGroups")
		if slices.Contains(verbs, "*") || slices.Contains(groups, "*") {
			t.Errorf("%s %s has the rule %v", object.GetKind(), object.GetName(), rule)
		}
	}
	if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role == "cluster-admin" {
		t.Errorf("%s %s binds cluster-admin", object.GetKind(), object.GetName())
	}
}

// isComplete fails the test unless the kinds are there that an operator needs.
func isComplete(t *testing.T, how string, objects []*unstructured.Unstructured, webhooks bool) {
	t.Helper()
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		if keep := object.GetAnnotations()["helm.sh/resource-policy"]; object.GetKind() == "CustomResourceDefinition" &&
			how == "chart" && keep != "keep" {
			t.Errorf("the definition would go with the release: its policy is %q", keep)
		}
		injected := object.GetAnnotations()["cert-manager.io/inject-ca-from"]
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") && !strings.HasSuffix(injected, "-webhook") {
			t.Errorf("nobody injects an authority into %s: %v", object.GetKind(), object.GetAnnotations())
		}
	}
	for _, kind := range []string{
		"CustomResourceDefinition", "ClusterRole", "Role", "RoleBinding", "Deployment", "Service",
	} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s among %v", kind, kinds)
		}
	}
	if has := kinds["ValidatingWebhookConfiguration"] == 1 && kinds["Certificate"] == 1; has != webhooks {
		t.Errorf("webhooks: %t, want %t: %v", has, webhooks, kinds)
	}
}

// TestProgram runs the program that the image has, as the account and with the roles that it is deployed with, on an
// API server: the sample is reconciled.
func TestProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "program")
	newProject(t, dir, "--group=program.example.com", "--kind=Shop", "--operator-name=program", "--replace="+repository)
	c, err := client.New(plane.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects := kustomization(t, filepath.Join(dir, "config"))
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		applied := client.ApplyConfigurationFromUnstructured(object)
		if err := c.Apply(t.Context(), applied, client.FieldOwner("test")); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	account, err := plane.Environment(t).User("system:serviceaccount:program-system:program", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	content, err := demo.Kubeconfig(account)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "go", "build", "-ldflags=-w", "-o", "bin/program", ".")
	program := exec.CommandContext(t.Context(), "bin/program",
		"--kubeconfig="+kubeconfig, "--health-probe-bind-address=0")
	program.Dir = dir
	demotest.StartProgram(t, program, startedWorkers)
	sample := parse(t, read(t, filepath.Join(dir, "config", "samples", "shop.yaml")))[0]
	sample.SetNamespace("default")
	if err := c.Create(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: "program.example.com", Version: "v1alpha1", Kind: "Shop"}
	controlplanetest.Eventually(t, "the sample is reconciled", func(ctx context.Context) error {
		status, reason, err := readyOf(ctx, c, kind, true)
		// Without nodes, no pod is ever available.
		if err == nil && reason != "InProgress" && status != "True" {
			err = fmt.Errorf("Ready is %q, with the reason %q", status, reason)
		}
		return err
	})
	mayLead(t, account)
}

// mayLead creates and renews the Lease of leader election, as the operator does. No other Lease is for it.
func mayLead(t *testing.T, account *rest.Config) {
	t.Helper()
	c, err := client.New(account, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "program-system", Name: "program"}}
	if err := c.Create(t.Context(), lease); err != nil {
		t.Error(err)
	}
	lease.Spec.HolderIdentity = new("test")
	if err := c.Update(t.Context(), lease); err != nil {
		t.Error(err)
	}
	other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "program-system", Name: "other"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsForbidden(err) {
		t.Errorf("another Lease: want it forbidden, got %v", err)
	}
}

// startedWorkers is what a manager says when its controller works.
var startedWorkers = regexp.MustCompile(`(Starting workers)`)

func rank(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
