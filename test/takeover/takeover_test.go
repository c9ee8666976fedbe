// Package takeover tests that operators of today take over what operators of an earlier commit have written: children,
// dependents, components and features, with their labels, finalizers, field managers and records. It has tests alone.
package takeover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// earlier is the commit whose operators run first. No format in clusters was promised before it.
const earlier = "e876758d"

// operators are the examples that run. Together they have children of each kind, a component, and a feature.
var operators = []string{"shop", "platform"}

// ordered are the resources of the operators, and what these read.
const ordered = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: default, name: settings}
data: {currency: EUR}
---
apiVersion: shop.example.com/v1
kind: Shop
metadata: {namespace: default, name: corner}
spec:
  image: shop:1
  replicas: 2
  host: corner.example.com
  settings: settings
  workers: [{name: mail, schedule: "0 * * * *"}, {name: bill, schedule: "0 1 * * *"}]
---
apiVersion: platform.example.com/v1alpha1
kind: Platform
metadata: {namespace: default, name: demo}
spec: {version: "1.1", search: {}}`

// changed is what is ordered of the operators of today.
const changed = `
apiVersion: shop.example.com/v1
kind: Shop
metadata: {namespace: default, name: corner}
spec: {image: "shop:2", settings: null}
---
apiVersion: platform.example.com/v1alpha1
kind: Platform
metadata: {namespace: default, name: demo}
spec: {search: {suspended: true}}`

// TestTakeOver runs the operators of the earlier commit until nothing changes any more, then those of today. No object
// is made again, and none is left when the resources are deleted.
func TestTakeOver(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	ctrllog.SetLogger(logr.Discard())
	before, today := buildEarlier(t), build(t, repository(t))
	env, err := controlplane.Start(t.Context(), controlplane.Options{
		CRDs: definitions(t), GarbageCollection: true, NamespaceDeletion: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("the control plane does not stop: %v", err)
		}
	})
	c := newCluster(t, env.Config())
	bystanders := c.objects(t)

	stop := c.run(t, before)
	c.apply(t, ordered, true)
	written := c.untilIdle(t, "the earlier operators", func(objects []object) error {
		for _, kind := range []string{
			"Deployment", "Service", "CronJob", "Ingress", "CustomResourceDefinition", "Dashboard",
		} {
			if !slices.ContainsFunc(objects, func(o object) bool {
				return o.kind == kind && !slices.Contains(bystanders, o)
			}) {
				return fmt.Errorf("they made no %s; the objects are %v", kind, objects)
			}
		}
		return isOrdered(objects)
	})
	stop()

	stop = c.run(t, today)
	expectSame(t, "after the change of operators", written, c.untilIdle(t, "the operators of today", isOrdered))
	c.apply(t, changed, false)
	after := c.untilIdle(t, "the operators of today", func(objects []object) error {
		return errors.Join(isOrdered(objects), c.isChanged(t))
	})
	expectSame(t, "after a change of the resources", written, after)
	for _, resource := range parse(t, changed) {
		if err := c.Delete(t.Context(), resource); err != nil {
			t.Fatalf("%s is not deleted: %v", resource.GetName(), err)
		}
	}
	c.untilIdle(t, "the deletions", func(objects []object) error {
		var left []object
		for _, o := range objects {
			if o.kind+" "+o.name != "ConfigMap settings" && !slices.Contains(bystanders, o) {
				left = append(left, o)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%v are left, want none", left)
		}
		return nil
	})
	stop()
}

// expectSame expects that all objects are there with their UIDs.
func expectSame(t *testing.T, when string, before, after []object) {
	t.Helper()
	for _, o := range before {
		if !slices.Contains(after, o) {
			t.Errorf("%s: %v was replaced or is gone, want it to stay; there are %v", when, o, after)
		}
	}
}

// object is one object of the cluster.
type object struct{ kind, namespace, name, uid string }

func (o object) String() string {
	return fmt.Sprintf("%s %s/%s (%s)", o.kind, o.namespace, o.name, o.uid)
}

func isOrdered(objects []object) error {
	for _, want := range []string{"Deployment corner", "Deployment demo-search", "Dashboard demo-overview"} {
		if !slices.ContainsFunc(objects, func(o object) bool { return o.kind+" "+o.name == want }) {
			return fmt.Errorf("there is no %s among %v", want, objects)
		}
	}
	return nil
}

// isChanged returns an error if a change of a resource has not reached its objects.
func (c *cluster) isChanged(t *testing.T) error {
	t.Helper()
	var shop, search appsv1.Deployment
	for name, deployment := range map[string]*appsv1.Deployment{"corner": &shop, "demo-search": &search} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, deployment); err != nil {
			return err
		}
	}
	if pod := shop.Spec.Template.Spec.Containers[0]; pod.Image != "shop:2" || len(pod.EnvFrom) > 0 {
		return fmt.Errorf("the shop runs %q with the settings %v, want shop:2 without any", pod.Image, pod.EnvFrom)
	}
	if replicas := *search.Spec.Replicas; replicas != 0 {
		return fmt.Errorf("the search has %d replicas, want 0: it is suspended", replicas)
	}
	return nil
}

// repository is the folder of this checkout.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// buildEarlier builds the operators of the earlier commit, and returns the folder of their programs.
func buildEarlier(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	// Packages of another folder are compiled again, so the commit always has the same one.
	folder := filepath.Join(cache, "espalier", "takeover", earlier)
	if _, err := os.Stat(folder); err != nil {
		extractEarlier(t, folder)
	}
	return build(t, folder)
}

// extractEarlier makes a folder with the files of the earlier commit. There is no such folder with a part of them.
func extractEarlier(t *testing.T, folder string) {
	t.Helper()
	requireEarlier(t)
	var said bytes.Buffer
	command := exec.Command("git", "-C", repository(t), "archive", earlier)
	command.Stderr = &said
	archive, err := command.Output()
	if err != nil {
		t.Fatalf("the files of the commit %s cannot be read: %v\n%s", earlier, err, &said)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	part, err := os.MkdirTemp(filepath.Dir(folder), "part")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(part) })
	extract := exec.Command("tar", "-x", "-C", part)
	extract.Stdin = bytes.NewReader(archive)
	if out, err := extract.CombinedOutput(); err != nil {
		t.Fatalf("the archive of %s cannot be extracted: %v\n%s", earlier, err, out)
	}
	// Another test run may have been faster.
	if err := os.Rename(part, folder); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
}

// requireEarlier skips the test in a checkout that does not have the earlier commit.
func requireEarlier(t *testing.T) {
	t.Helper()
	root := repository(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, os.ErrNotExist) {
		t.Skipf("it needs the commit %s, and this is no git repository", earlier)
	}
	if out, err := exec.Command("git", "-C", root, "rev-parse", "--git-dir").CombinedOutput(); err != nil {
		t.Fatalf("git cannot read the repository %s: %v\n%s", root, err, out)
	}
	if exec.Command("git", "-C", root, "cat-file", "-e", earlier+"^{commit}").Run() != nil {
		t.Skipf("it needs the commit %s, which this clone does not have: run git fetch --unshallow", earlier)
	}
}

// build builds the operators of a checkout, and returns the folder of their programs.
func build(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	args := []string{"build", "-ldflags=-w", "-o", folder + "/"}
	for _, operator := range operators {
		args = append(args, "./examples/"+operator)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the operators of %s cannot be built: %v\n%s", root, err, out)
	}
	return folder
}

func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, operator := range operators {
		paths, _ := filepath.Glob("../../examples/" + operator + "/config/crd/*.yaml")
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var definition apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(content, &definition); err != nil {
				t.Fatalf("%s is no definition: %v", path, err)
			}
			all = append(all, &definition)
		}
	}
	if len(all) != len(operators) {
		t.Fatalf("got %d definitions, want %d", len(all), len(operators))
	}
	return all
}

// parse returns the objects of a manifest.
func parse(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("no manifest: %v\n%s", err, document)
		}
		objects = append(objects, o)
	}
	return objects
}

// run starts the programs of a folder, and returns what stops them.
func (c *cluster) run(t *testing.T, folder string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, operator := range operators {
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, filepath.Join(folder, operator),
			"-kubeconfig", c.kubeconfig, "-health-probe-bind-address", "0")
		cmd.Stdout, cmd.Stderr = &output, &output
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		if err := cmd.Start(); err != nil {
			t.Fatalf("the operator %s does not start: %v", operator, err)
		}
		running.Go(func() {
			if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the operator %s of %s ends with %v:\n%s", operator, folder, err, &output)
			}
		})
	}
	stopped := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stopped)
	return stopped
}

// writeKubeconfig writes how to reach the API server into a file, and returns its path.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatalf("the kubeconfig cannot be written: %v", err)
	}
	return path
}

// apply creates or changes the objects of a manifest.
func (c *cluster) apply(t *testing.T, manifest string, create bool) {
	t.Helper()
	for _, o := range parse(t, manifest) {
		err := error(nil)
		if create {
			err = c.Create(t.Context(), o)
		} else {
			change, _ := o.MarshalJSON()
			err = c.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", change))
		}
		if err != nil {
			t.Fatalf("%s %s cannot be written: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
