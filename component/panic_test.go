package component_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type panicking struct{ generator.Generator }

func (panicking) Generate(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
	panic("no data")
}

// TestPanics: a component with a function that panics is not ready, and the condition names the node.
func TestPanics(t *testing.T) {
	hook := []generator.Hook[*resources.Assembly]{func(context.Context, client.Client, *resources.Assembly) error {
		panic("no data")
	}}
	for name, panics := range map[string]func(*component.ComponentReconciler[*resources.Assembly]){
		"generator": func(r *component.ComponentReconciler[*resources.Assembly]) { r.Generator = panicking{} },
		"configure": func(r *component.ComponentReconciler[*resources.Assembly]) {
			r.Configure = func(context.Context, *resources.Assembly, *generator.Configuration) error { panic("no data") }
		},
		"parameters": func(r *component.ComponentReconciler[*resources.Assembly]) {
			r.Parameters = func(context.Context, *resources.Assembly) (generator.Unstructurable, error) { panic("no data") }
		},
		"references": func(r *component.ComponentReconciler[*resources.Assembly]) {
			r.References = func(context.Context, *resources.Assembly) (map[string]string, error) { panic("no data") }
		},
		"post-read":      func(r *component.ComponentReconciler[*resources.Assembly]) { r.Hooks.PostRead = hook },
		"pre-reconcile":  func(r *component.ComponentReconciler[*resources.Assembly]) { r.Hooks.PreReconcile = hook },
		"post-reconcile": func(r *component.ComponentReconciler[*resources.Assembly]) { r.Hooks.PostReconcile = hook },
	} {
		t.Run(name, func(t *testing.T) {
			house, _, _ := newHouse()
			deployed := rollOut(t, house, 0)
			node := assembling()
			panics(node)
			o := newOperated(t, node, deployed.Object(), deployed.Objects())
			_, err := o.reconcile(t, time.Minute)
			if err == nil || !strings.Contains(err.Error(), "ComponentReconciler: panicked: no data") {
				t.Errorf("the error is %v, want the panic with the path of the node", err)
			}
			status := o.house(t).Status
			c := meta.FindStatusCondition(status.Conditions, "Ready")
			if c.Status != metav1.ConditionFalse || c.Reason != component.ReasonError || status.State != apis.ComponentError ||
				!strings.HasSuffix(c.Message, "ComponentReconciler: panicked: no data") {
				t.Errorf("the state is %s and the condition %+v, want an Error with the panic", status.State, c)
			}
		})
	}
}

// careless panics where it is asked whether an object is suspended.
type careless struct{ *supervised }

func (c careless) Reconcile(ctx context.Context, a *resources.Assembly) (reconcilers.Result, error) {
	c.observed = nil
	return c.assemblyNode.Reconcile(reconcilers.WithSupervisor(ctx, c), a)
}

func (careless) SuspensionOf(client.Object) apis.Health { panic("no data") }

// TestPanicOfSuspension: a rule is asked by goroutines, the panic of which would end the program.
func TestPanicOfSuspension(t *testing.T) {
	house, walls, _ := newHouse()
	house.SetObjects(walls, deployment("web", "0", 2))
	o, s := newSupervised(t, house, assembling())
	o.root.Reconciler = careless{s}
	s.mode = reconcilers.Suspend
	for range 3 {
		if _, err := o.reconcile(t, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	s.saw(t, "Deployment web Failing: AssemblyResourceReconciler/ComponentReconciler: panicked: no data",
		"ConfigMap walls Suspended")
}
