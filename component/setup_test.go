package component_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// setUpTree sets up a tree of nodes below a root. No API server is needed for that.
func setUpTree[T client.Object](t *testing.T, empty T, nodes ...reconcilers.SubReconciler[T]) error {
	t.Helper()
	mgr := newManager(t, &rest.Config{Host: "https://localhost:1"}, ctrl.Options{})
	mgr.GetScheme().AddKnownTypes(resources.GroupVersion, &pair{})
	root := &reconcilers.ResourceReconciler[T]{
		Type: empty, Config: reconcilers.Config{Client: mgr.GetClient()}, Reconciler: reconcilers.Sequence[T](nodes),
	}
	return root.SetupWithManager(t.Context(), mgr)
}

// A component whose resource has no status of a component would do nothing, so it is refused at set-up, with the words
// that help.
func TestComponentWithoutStatusIsRefusedAtSetUp(t *testing.T) {
	node := &component.ComponentReconciler[*resources.Widget]{
		Name: "Parts", Prefix: componentPrefix, Generator: resources.AssemblyGenerator(),
	}
	err := setUpTree(t, &resources.Widget{}, node)
	const want = `ComponentReconciler "Parts" finds no apis.ComponentStatus in the status of Widget: ` +
		"embed apis.ComponentStatus in the type of its field Status, or define Status"
	if err == nil || err.Error() != want {
		t.Errorf("set-up returned %v, want %s", err, want)
	}
	other := &unstructured.Unstructured{}
	other.SetAPIVersion("test.espalier.dev/v1")
	other.SetKind("Widget")
	err = setUpTree(t, other, &component.ComponentReconciler[*unstructured.Unstructured]{
		Prefix: componentPrefix, Generator: resources.AssemblyGenerator(),
	})
	if err == nil || !strings.Contains(err.Error(), "or define Status") {
		t.Errorf("set-up returned %v for an unstructured resource, want that Status is to be defined", err)
	}
}

// What may have a status is not refused.
func TestComponentWithStatusIsSetUp(t *testing.T) {
	if err := setUpTree(t, &resources.Assembly{}, assembling()); err != nil {
		t.Error(err)
	}
	status := &apis.ComponentStatus{}
	if err := setUpTree(t, &resources.Widget{}, &component.ComponentReconciler[*resources.Widget]{
		Prefix: componentPrefix, Generator: resources.AssemblyGenerator(),
		Status: func(*resources.Widget) *apis.ComponentStatus { return status },
	}); err != nil {
		t.Error(err)
	}
}

// A mistake that no retry mends is returned to the controller, which logs and counts it, and it is not tried again.
func TestComponentReturnsPermanentErrors(t *testing.T) {
	withoutStatus := assembling()
	withoutStatus.Status = func(*resources.Assembly) *apis.ComponentStatus { return nil }
	withoutNamespace := assembling()
	withoutNamespace.Inventory = component.Inventory{Kind: "Secret"}
	otherCluster := assembling()
	for name, test := range map[string]struct {
		node   *component.ComponentReconciler[*resources.Assembly]
		change func(*resources.Assembly)
		text   string
	}{
		"no status": {withoutStatus, func(*resources.Assembly) {}, "Assembly has none of a component"},
		"another inventory": {withoutNamespace, func(a *resources.Assembly) { a.Status.InventoryKind = "ConfigMap" },
			"the Kind of Inventory must be ConfigMap"},
		"another cluster": {otherCluster, func(a *resources.Assembly) { a.Spec.ServiceAccountName = "someone" },
			"needs a config that was made by NewConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			house, _, _ := newHouse()
			test.change(house)
			o := newOperated(t, test.node, house, nil)
			result, err := o.reconcile(t, 0)
			if err == nil || !strings.Contains(err.Error(), test.text) || !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("the error is %v, want a terminal one with %q", err, test.text)
			}
			if err != nil && strings.Contains(err.Error(), "terminal error") {
				t.Errorf(`the text is %v, want it without "terminal error"`, err)
			}
			if result != (reconcilers.Result{}) {
				t.Errorf("the result is %v, want none", result)
			}
		})
	}
}

// pair is a resource with two components.
type pair struct {
	resources.Assembly
	Status struct {
		First  apis.ComponentStatus
		Second apis.ComponentStatus
	}
}

func (p *pair) DeepCopyObject() runtime.Object { copied := *p; return &copied }

// Two components of one resource would take each other's objects or records, so they need a prefix and a status each.
// Both are named.
func TestComponentsThatGetInEachOthersWayAreRefusedAtSetUp(t *testing.T) {
	of := func(name, prefix string, status func(*pair) *apis.ComponentStatus) *component.ComponentReconciler[*pair] {
		return &component.ComponentReconciler[*pair]{
			Name: name, Prefix: prefix, Generator: resources.AssemblyGenerator(), Status: status,
		}
	}
	first := func(p *pair) *apis.ComponentStatus { return &p.Status.First }
	second := func(p *pair) *apis.ComponentStatus { return &p.Status.Second }
	guarded := func(node *component.ComponentReconciler[*pair]) *component.ComponentReconciler[*pair] {
		node.Finalizer = "example.com/" + strings.ToLower(node.Name)
		return node
	}
	elsewhere := func(*pair) *apis.ComponentStatus { return &apis.ComponentStatus{} }
	panics := func(*pair) *apis.ComponentStatus { panic("it has no content") }
	for name, test := range map[string]struct {
		a, b *component.ComponentReconciler[*pair]
		want string
	}{
		"a prefix and a status each":                    {of("A", "a.example.com", first), of("B", "b.example.com", second), ""},
		"statuses that are not in the resource":         {of("A", "a.example.com", elsewhere), of("B", "b.example.com", elsewhere), ""},
		"a status that an empty resource does not have": {of("A", "a.example.com", panics), of("B", "b.example.com", panics), ""},
		"one prefix": {guarded(of("A", "a.example.com", first)), guarded(of("B", "a.example.com", second)),
			`ComponentReconciler "B" must define another Prefix than "a.example.com", which pairResourceReconciler/0/A has`},
		"one prefix, and so one finalizer": {of("A", "a.example.com", first), of("B", "a.example.com", second),
			`ComponentReconciler "B" must define another Prefix than "a.example.com", which pairResourceReconciler/0/A has`},
		"one status": {of("A", "a.example.com", first), of("B", "b.example.com", first),
			`ComponentReconciler "B" must define another Status than that of pairResourceReconciler/0/A`},
	} {
		t.Run(name, func(t *testing.T) {
			err := setUpTree(t, &pair{}, reconcilers.SubReconciler[*pair](test.a), test.b)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("set-up returned %v, want %q", err, test.want)
			}
		})
	}
	node := assembling()
	if err := setUpTree(t, &resources.Assembly{}, reconcilers.SubReconciler[*resources.Assembly](node), node); err == nil {
		t.Error("a node that stands in the tree twice is set up, want an error")
	}
}
