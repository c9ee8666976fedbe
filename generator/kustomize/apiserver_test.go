package kustomize_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// deployed is the folder of a component. Its parameters are the spec of an Assembly.
var deployed = map[string]string{
	"app/kustomization.yaml.tpl": `resources:
- made.yaml
{{- if gt (len .objects) 1 }}
- extra.yaml
{{- end }}
- ../base
namespace: '{{ namespace }}'
configMapGenerator:
- name: generated
  literals: ["version={{ kubernetesVersion.Major }}"]
`,
	"app/made.yaml.tpl":       dataTemplate(`'{{ (index .objects 0).data.size }}'`),
	"app/extra.yaml":          configMapNamed("extra"),
	"base/kustomization.yaml": "resources: [x.yaml]\n",
	"base/x.yaml":             configMapNamed("based"),
}

// start runs an operator that deploys the Assemblies of a namespace, until the test ends.
func start(t *testing.T, namespace string, made generator.Generator) *controlplane.Requests {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	must(t, err)
	root := component.NewComponentRoot("assembly.espalier.test", made, component.Options[*resources.Assembly]{
		Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
	})
	must(t, root.SetupWithManager(t.Context(), mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	}))
	return requests
}

var eventually = controlplanetest.Eventually

// TestOnAnAPIServer: a kustomization is deployed, changed and deleted. At rest, no request is made.
func TestOnAnAPIServer(t *testing.T) {
	namespace := plane.Namespace(t)
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	must(t, err)
	made, err := kustomize.NewGenerator(inMemory(deployed), "app", kustomize.Options{Bases: []string{"../base"}})
	must(t, err)
	requests := start(t, namespace, generator.NewGenerator(made).WithObjectTransformer(
		&kustomize.ObjectTransformer{Labels: map[string]string{"team": "a"}}))

	assembly := resources.NewAssembly(namespace, "all", sized("1"))
	must(t, c.Create(t.Context(), assembly))
	ready := func(what string) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
				return err
			}
			if assembly.Status.State != apis.ComponentReady || assembly.Status.ObservedGeneration != assembly.Generation {
				return fmt.Errorf("the state is %s: %v", assembly.Status.State, assembly.Status.Conditions)
			}
			return nil
		})
	}
	deployed := func() []string {
		t.Helper()
		var all corev1.ConfigMapList
		must(t, c.List(t.Context(), &all, client.InNamespace(namespace), client.MatchingLabels{"team": "a"}))
		var found []string
		for _, object := range all.Items {
			found = append(found, object.Name[:4]+object.Data["value"]+object.Data["version"])
		}
		return found
	}
	expect := func(want string) {
		t.Helper()
		if got := fmt.Sprint(deployed()); got != want {
			t.Errorf("there are %s, want %s", got, want)
		}
	}
	ready("it is not deployed")
	expect("[base gene1 made1]")
	controlplanetest.Quiet(t, requests)

	change := func(objects ...client.Object) {
		t.Helper()
		eventually(t, "it is not changed", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); err != nil {
				return err
			}
			assembly.SetObjects(objects...)
			return c.Update(ctx, assembly)
		})
		ready("the change is not deployed")
	}
	change(sized("2"), sized("3"))
	expect("[base extr gene1 made2]")
	change(sized("4"))
	expect("[base gene1 made4]")
	controlplanetest.Quiet(t, requests)

	must(t, c.Delete(t.Context(), assembly))
	eventually(t, "it does not go", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); !apierrs.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	})
	expect("[]")
}

func sized(size string) client.Object {
	object := &corev1.ConfigMap{Data: map[string]string{"size": size}}
	object.APIVersion, object.Kind, object.Name = "v1", "ConfigMap", "parameters"
	return object
}
