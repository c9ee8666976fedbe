package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestChildReconcilerValidate(t *testing.T) {
	without := func(changes ...func(*configMapNode)) *configMapNode {
		return changedChild(changes...)(&trace{}).(*configMapNode)
	}
	unnamed := func(text string) string { return `ChildReconciler "ConfigMapChildReconciler" must ` + text }
	validationTests{
		"valid":                   {node: without()},
		"valid, without an owner": {node: without(withoutOwner)},
		"valid, ReflectsWithError": {node: without(func(n *configMapNode) {
			n.ReflectChildStatusOnParent = nil
			n.ReflectChildStatusOnParentWithError = reflectNothing
		})},
		"empty": {node: &configMapNode{}, shallow: unnamed("implement DesiredChild")},
		"named": {
			node:    without(func(n *configMapNode) { n.Name, n.DesiredChild = "mine", nil }),
			shallow: `ChildReconciler "mine" must implement DesiredChild`,
		},
		"no reflection": {
			node:    without(func(n *configMapNode) { n.ReflectChildStatusOnParent = nil }),
			shallow: unnamed("implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError"),
		},
		"no OurChild": {
			node:    without(withoutOwner, func(n *configMapNode) { n.OurChild = nil }),
			shallow: unnamed("implement OurChild since owner references are not used"),
		},
		"no ListOptions": {
			node:    without(withoutOwner, func(n *configMapNode) { n.ListOptions = nil }),
			shallow: unnamed("implement ListOptions since owner references are not used"),
		},
		"no manager": {
			node:    without(func(n *configMapNode) { n.ChildObjectManager = nil }),
			shallow: unnamed("implement MergeBeforeUpdate or ChildObjectManager"),
		},
		"nil manager": {
			node:    without(func(n *configMapNode) { n.ChildObjectManager = (*configMaps)(nil) }),
			shallow: unnamed("implement MergeBeforeUpdate or ChildObjectManager"),
		},
		// The manager has no name before it is used, so the name that defaulting would give is not part of the message.
		"bad manager": {
			node:      without(func(n *configMapNode) { n.ChildObjectManager = &configMaps{} }),
			recursive: unnamed(`have a valid ChildObjectManager: UpdatingObjectManager "" must define MergeBeforeUpdate`),
		},
		"a manager that cannot tell": {node: without(func(n *configMapNode) { n.ChildObjectManager = noManager{} })},
	}.run(t)
}

func reflectNothing(context.Context, *resources.Widget, *corev1.ConfigMap, error) error { return nil }

// noManager is an object manager that does nothing, and that cannot be validated.
type noManager struct{}

func (noManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (noManager) Manage(_ context.Context, _ client.Object, actual, _ *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return actual, nil
}

// What may not own what is an error that names both, and nothing is written.
func TestChildReconcilerOwnerScopes(t *testing.T) {
	reconcile := func(t *testing.T, owner client.Object, child *corev1.ConfigMap) error {
		t.Helper()
		expect := expectWidget()
		node := &reconcilers.ChildReconciler[client.Object, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(context.Context, client.Object) (*corev1.ConfigMap, error) { return child, nil },
			ReflectChildStatusOnParent: func(_ context.Context, _ client.Object, child *corev1.ConfigMap, err error) {
				t.Errorf("reflects %v with the error %v, want nothing to be reflected", child, err)
			},
			ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
		}
		_, err := node.Reconcile(testContext(t, expect.Config()), owner)
		expect.AssertExpectations(t)
		return err
	}
	contains := func(t *testing.T, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("returned %v, expected %q", err, text)
		}
	}
	t.Run("no namespace", func(t *testing.T) {
		err := reconcile(t, widget.Object(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}})
		contains(t, err, "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace default (AnyNamespace")
	})
	t.Run("another namespace", func(t *testing.T) {
		err := reconcile(t, widget.Object(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "child"}})
		contains(t, err, "cross-namespace owner references are disallowed, owner's namespace default, obj's namespace elsewhere (AnyNamespace")
	})
	t.Run("unknown kind", func(t *testing.T) {
		unknown := &statusless{ObjectMeta: widget.Object().ObjectMeta}
		err := reconcile(t, unknown, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}})
		contains(t, err, "statusless")
	})
}

// A resource without a namespace may own children of any.
func TestChildReconcilerOfAClusterScopedResource(t *testing.T) {
	owner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "team-uid", CreationTimestamp: metav1.NewTime(requestTime)}}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings"}}
	created := desired.DeepCopy()
	created.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Namespace", Name: "team", UID: "team-uid", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	child := func() reconcilers.SubReconciler[*corev1.Namespace] {
		return &reconcilers.ChildReconciler[*corev1.Namespace, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(context.Context, *corev1.Namespace) (*corev1.ConfigMap, error) { return desired.DeepCopy(), nil },
			ReflectChildStatusOnParent: func(_ context.Context, _ *corev1.Namespace, child *corev1.ConfigMap, err error) {
				if child == nil && err == nil {
					t.Error("nothing is reflected, expected a child or an error")
				}
			},
			ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
		}
	}
	rtesting.NodeTests[*corev1.Namespace]{
		"created": {
			Resource:      owner,
			ExpectCreates: []client.Object{created},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(owner, widgetScheme, "Normal", "Created", `Created ConfigMap "settings"`),
			},
		},
		"in sync": {Resource: owner, GivenObjects: []client.Object{created}},
	}.RunNode(t, widgetScheme, child)
}
