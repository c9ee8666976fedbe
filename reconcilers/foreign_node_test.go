package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preparedNode is a node of another package whose Validate needs what its SetupWithManager prepares.
type preparedNode struct {
	prepared *struct{ err error }
	invalid  error
}

func (n *preparedNode) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	n.prepared = &struct{ err error }{n.invalid}
	return nil
}

func (n *preparedNode) Validate(context.Context) error { return n.prepared.err }

func (n *preparedNode) Reconcile(context.Context, *resources.Widget) (reconcilers.Result, error) {
	return reconcilers.Result{}, nil
}

// A node of another package is validated after its set-up, and an error of it keeps the controller from starting.
func TestANodeOfAnotherPackageIsValidatedAfterItsSetup(t *testing.T) {
	for name, invalid := range map[string]error{"valid": nil, "invalid": errBoom} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, plane.Config(t), ctrl.Options{})
			root := &widgetRoot{
				Config:     reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour),
				Reconciler: widgetSequence{&widgetFinalizer{Finalizer: "test.espalier.dev/f", Reconciler: &preparedNode{invalid: invalid}}},
			}
			if err := root.SetupWithManager(t.Context(), mgr); !errors.Is(err, invalid) {
				t.Errorf("the set-up returned %v, want %v", err, invalid)
			}
		})
	}
}

// The set-up asks the API server for nothing, so a missing CustomResourceDefinition of a child does not keep the manager from starting.
func TestSetupMakesNoRequest(t *testing.T) {
	missing := &unstructured.Unstructured{}
	missing.SetAPIVersion("missing.espalier.test/v1")
	missing.SetKind("Missing")
	config, requests := controlplane.CountRequests(plane.Config(t))
	mgr := newManager(t, config, ctrl.Options{})
	child := &reconcilers.ChildReconciler[*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList]{
		ChildType: missing,
		DesiredChild: func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) {
			return nil, nil
		},
		MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unstructured.Unstructured, error) {},
	}
	root := &widgetRoot{Config: reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour), Reconciler: child}
	before := requests.Total()
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	if n := requests.Total() - before; n != 0 {
		t.Errorf("there are %d requests of the set-up, want none", n)
	}
}

// The last finalizer of an unstructured object goes as it does upstream: the list is empty, and not null.
func TestClearFinalizerOfAnUnstructuredObject(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(resources.GroupVersion.String())
	obj.SetKind("Widget")
	obj.SetNamespace("default")
	obj.SetName("widget")
	obj.SetResourceVersion("999")
	obj.SetFinalizers([]string{"test.espalier.dev/f"})
	var body string
	config := expectWidget(obj.DeepCopy()).Config()
	config.Client = &patchRecorder{Client: config.Client, body: &body}
	if err := reconcilers.ClearFinalizer(testContext(t, config), obj, "test.espalier.dev/f"); err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"finalizers":[],"resourceVersion":"999"}}`; body != want {
		t.Errorf("sent %s, want %s", body, want)
	}
}

type patchRecorder struct {
	client.Client
	body *string
}

func (r *patchRecorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	data, err := patch.Data(obj)
	*r.body = string(data)
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, obj, patch, opts...)
}
