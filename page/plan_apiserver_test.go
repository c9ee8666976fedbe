package page_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What a viewer may do in another cluster is not known, so of the objects there the page has names and numbers.
func TestThePlanOfAComponentInAnotherCluster(t *testing.T) {
	config := plane.Config(t)
	c := newClient(t, config)
	kubeconfig, err := demo.Kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	away := resources.NewAssembly("default", "house", server(), settings("second", "2"))
	away.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: "remote"}}
	create(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "remote"}, Data: map[string][]byte{"value": kubeconfig},
	}, away)
	options := ctrl.Options{Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{page: page.New(page.Options{Access: page.OnLoopback()}), client: c}
	h.root = component.NewComponentRoot("house.example.com", resources.AssemblyGenerator(),
		component.Options[*resources.Assembly]{
			Config:      reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour).WithObserver(h.page),
			FenceMargin: -1,
		})
	if err := h.root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		// Without the resource, the objects go.
		if err := c.Delete(t.Context(), away); err != nil {
			t.Error(err)
		}
		controlplanetest.Eventually(t, "the component is not gone", func(context.Context) error {
			if h.page.Resource("assembly", keyOf("house")).Known {
				return fmt.Errorf("the page knows it")
			}
			return nil
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	controlplanetest.Eventually(t, "the component does not wait", func(context.Context) error {
		components := h.page.Resource("assembly", keyOf("house")).Components
		if len(components) != 1 || len(components[0].Waves) != 2 || components[0].Waves[0].State != "In progress" {
			return fmt.Errorf("the components are %+v", components)
		}
		now := &resources.Assembly{}
		if err := c.Get(t.Context(), keyOf("house"), now); err != nil {
			return err
		}
		written := func(r apis.InventoryRecord) bool { return r.Name == "server" && r.Fields != "" }
		if !slices.ContainsFunc(now.Status.Inventory, written) {
			return fmt.Errorf("the inventory is %+v", now.Status.Inventory)
		}
		return nil
	})
	doc := h.plan(t)
	want := [][]string{{"create", "ConfigMap default/second", "not shown to you"}}
	if diff := cmp.Diff(want, planRows(doc)); diff != "" {
		t.Errorf("the plan (-want, +shown)\n%s", diff)
	}
	text := doc.byID(t, "inventory").text()
	if counts := "Objects: 1 to create, 1 unchanged, 1 in the way."; !strings.Contains(text, counts) {
		t.Errorf("the page lacks %q: %s", counts, text)
	}
}
