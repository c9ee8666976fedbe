package helm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	Jobs: true, Workloads: true,
}}

func TestMain(m *testing.M) {
	kube.ManagedFieldsManager = "helm" // as in the program helm
	os.Exit(plane.Main(m))
}

const (
	takeOverChart  = "testdata/takeover"
	takeOverPrefix = "takeover.espalier.test"
)

// restGetter gives the SDK clients for the test's API server.
type restGetter struct {
	config    *rest.Config
	namespace string
}

func (g restGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g restGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client), nil
}

func (g restGetter) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(client), nil
}

func (g restGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}

// installRelease installs the chart with the SDK.
func installRelease(t *testing.T, namespace string, serverSide bool) {
	t.Helper()
	discard := slog.New(slog.NewTextHandler(io.Discard, nil)).Handler()
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(discard))
	if err := configuration.Init(restGetter{plane.Config(t), namespace}, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	chart, err := loader.LoadDir(takeOverChart)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace = "shop", namespace
	install.ServerSideApply, install.WaitStrategy, install.Timeout = serverSide, kube.HookOnlyStrategy, 5*time.Minute
	if _, err := install.RunWithContext(t.Context(), chart, map[string]any{}); err != nil {
		t.Fatal(err)
	}
}

// takeOverWorld is a namespace in which components are deployed.
type takeOverWorld struct {
	*testing.T
	client    client.Client
	namespace string
	assembly  *resources.Assembly
	// requests are those of the operator, and generator is the one that it uses.
	requests *controlplane.Requests
	made     *countedGenerator
	// stop ends the operator.
	stop func()
}

// countedGenerator counts how often it is called.
type countedGenerator struct {
	*helm.Generator
	rendered, asked atomic.Int64
}

func (g *countedGenerator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	g.rendered.Add(1)
	return g.Generator.Generate(ctx, namespace, name, parameters)
}

func (g *countedGenerator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	defer g.asked.Add(1)
	return g.Generator.Inputs(ctx, namespace, name)
}

// startTakeOver starts an operator that deploys the chart, and stops it when the test ends.
func startTakeOver(t *testing.T, namespace string, options helm.Options) *takeOverWorld {
	t.Helper()
	return startChart(t, namespace, os.DirFS(takeOverChart), options)
}

func startChart(t *testing.T, namespace string, folder fs.FS, options helm.Options) *takeOverWorld {
	t.Helper()
	counted, requests := controlplane.CountRequests(plane.Config(t))
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme:     resources.NewScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	chart, err := helm.NewGenerator(folder, "", options)
	if err != nil {
		t.Fatal(err)
	}
	own := &countedGenerator{Generator: chart}
	made := generator.NewGenerator(own).WithParameterTransformer(chartValues{})
	root := component.NewComponentRoot(takeOverPrefix, made, component.Options[*resources.Assembly]{
		Config:      reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
		ReclaimFrom: []string{"helm"},
	})
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	t.Cleanup(stop)
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &takeOverWorld{T: t, client: c, namespace: namespace, requests: requests, made: own, stop: stop}
}

// chartValues returns the values that an Assembly has in a ConfigMap that stands for them.
type chartValues struct{}

func (chartValues) Deterministic() bool { return true }

func (chartValues) TransformParameters(
	_, _ string, parameters generator.Unstructurable,
) (generator.Unstructurable, error) {
	text, _, err := unstructured.NestedString(parameters.ToUnstructured()["objects"].([]any)[0].(map[string]any), "data", "values")
	if err != nil {
		return nil, err
	}
	values := generator.UnstructurableMap{}
	return values, yaml.Unmarshal([]byte(text), &values)
}

func (w *takeOverWorld) valuesObject(text string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "values"},
		"data": map[string]any{"values": text},
	}}
}

func (w *takeOverWorld) deploy(values string) {
	w.Helper()
	w.assembly = resources.NewAssembly(w.namespace, "shop", w.valuesObject(values))
	w.assembly.Spec.UpdatePolicy = apis.UpdateApplyOverride
	if err := w.client.Create(w.Context(), w.assembly); err != nil {
		w.Fatal(err)
	}
}

func (w *takeOverWorld) ready() {
	w.Helper()
	controlplanetest.Eventually(w, "the component is not ready", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly); err != nil {
			return err
		}
		if s := w.assembly.Status; s.State != apis.ComponentReady || s.ObservedGeneration != w.assembly.Generation {
			return fmt.Errorf("%s of generation %d: %v", s.State, s.ObservedGeneration, s.Conditions)
		}
		return nil
	})
}

// releaseObjects are the objects of the release, hooks included.
var releaseObjects = []string{
	"v1 ServiceAccount shop", "v1 Secret shop", "v1 ConfigMap shop", "v1 Service shop", "apps/v1 Deployment shop",
	"rbac.authorization.k8s.io/v1 Role shop", "rbac.authorization.k8s.io/v1 RoleBinding shop",
	"v1 ConfigMap shop-kept", "batch/v1 Job shop-plain", "batch/v1 Job shop-before", "batch/v1 Job shop-after",
}

func (w *takeOverWorld) read(ctx context.Context, what string) (*unstructured.Unstructured, error) {
	parts := strings.Fields(what)
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(parts[0])
	object.SetKind(parts[1])
	return object, w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: parts[2]}, object)
}

func (w *takeOverWorld) uids() map[string]types.UID {
	w.Helper()
	uids := map[string]types.UID{}
	for _, what := range releaseObjects {
		object, err := w.read(w.Context(), what)
		if err != nil {
			w.Fatal(err)
		}
		uids[what] = object.GetUID()
	}
	return uids
}

// recreated lists the objects whose UIDs differ.
func recreated(before, after map[string]types.UID) []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if before[what] != after[what] {
			out = append(out, what)
		}
	}
	return out
}

// TestTakeOver: a component takes over a release without recreating an object, or running a hook again. Later changes
// are applied, and what the chart drops is removed from the objects. Its deletion deletes what is not to be kept.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for name, serverSide := range map[string]bool{"Helm 4": true, "Helm 3": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := plane.Namespace(t)
			installRelease(t, namespace, serverSide)
			w := startTakeOver(t, namespace, helm.Options{TakeOver: true})
			installed := w.uids()
			w.deploy("")
			w.ready()
			if changed := recreated(installed, w.uids()); len(changed) > 0 {
				t.Errorf("taking over has recreated %q, want nothing recreated", changed)
			}
			w.upgrade(installed)
			w.delete()
		})
	}
}

// change replaces the values.
func (w *takeOverWorld) change(values string) {
	w.Helper()
	w.assembly.SetObjects(w.valuesObject(values))
	controlplanetest.Eventually(w, "the component does not change", func(ctx context.Context) error {
		spec := w.assembly.Spec
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly); err != nil {
			return err
		}
		w.assembly.Spec = spec
		return w.client.Update(ctx, w.assembly)
	})
}

// upgrade changes values. The hook of upgrades runs, and nothing else is recreated.
func (w *takeOverWorld) upgrade(installed map[string]types.UID) {
	w.Helper()
	w.change("image: example.com/web:2\nsettings: {color: blue, shape: null}\n")
	w.ready()
	config, err := w.read(w.Context(), "v1 ConfigMap shop")
	if err != nil {
		w.Fatal(err)
	}
	if data := config.Object["data"].(map[string]any); len(data) != 1 || data["color"] != "blue" {
		w.Errorf("the ConfigMap has %v, want the color blue alone", data)
	}
	deployment, err := w.read(w.Context(), "apps/v1 Deployment shop")
	if err != nil {
		w.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) != 1 || containers[0].(map[string]any)["image"] != "example.com/web:2" {
		w.Errorf("the Deployment has %v, want one container of example.com/web:2", containers)
	}
	if changed := recreated(installed, w.uids()); !slices.Equal(changed, []string{"batch/v1 Job shop-after"}) {
		w.Errorf("the upgrade has recreated %q, want the Job shop-after alone", changed)
	}
}

// delete deletes the component.
func (w *takeOverWorld) delete() {
	w.Helper()
	if err := w.client.Delete(w.Context(), w.assembly); err != nil {
		w.Fatal(err)
	}
	controlplanetest.Eventually(w, "the component is not gone", func(ctx context.Context) error {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	for _, what := range releaseObjects {
		_, err := w.read(w.Context(), what)
		if kept := what == "v1 ConfigMap shop-kept"; kept && err != nil || !kept && !apierrors.IsNotFound(err) {
			w.Errorf("%s: the read ends with %v, want it kept: %v", what, err, kept)
		}
	}
}

// TestReleaseIsRefused: without TakeOver, nothing of a release is changed. The condition names the release.
func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	installRelease(t, namespace, true)
	// A hook has no mark of its release, and the condition names what is first in the way.
	w := startTakeOver(t, namespace, helm.Options{DropHooks: []string{"pre-install"}})
	installed := w.versions()
	w.deploy("")
	controlplanetest.Eventually(w, "the condition does not name the release", func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.assembly), w.assembly); err != nil {
			return err
		}
		for _, condition := range w.assembly.Status.Conditions {
			if condition.Status == metav1.ConditionTrue || w.assembly.Status.State == apis.ComponentReady {
				w.Fatalf("the status is %v, want it not ready", w.assembly.Status)
			}
		}
		said := fmt.Sprint(w.assembly.Status.Conditions, w.assembly.Status.Inventory)
		if !strings.Contains(said, "belongs to the Helm release "+namespace+"/shop; adoption-policy: always adopts it") {
			return errors.New(said)
		}
		return nil
	})
	if now := w.versions(); !maps.Equal(installed, now) {
		t.Errorf("the versions of the objects are\n%v\nwant those of before\n%v", now, installed)
	}
}

func (w *takeOverWorld) versions() map[string]string {
	w.Helper()
	versions := map[string]string{}
	for _, what := range releaseObjects {
		object, err := w.read(w.Context(), what)
		if err != nil {
			w.Fatal(err)
		}
		versions[what] = string(object.GetUID()) + fmt.Sprint(object.GetLabels(), object.GetAnnotations(), object.GetGeneration())
	}
	return versions
}
