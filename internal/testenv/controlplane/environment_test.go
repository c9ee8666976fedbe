package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	GarbageCollection: true,
	NamespaceDeletion: true,
}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func TestDependentsGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	c, namespace := newClient(t, plane.Config(t)), plane.Namespace(t)
	owner := configMap(namespace, "owner")
	create(t, c, owner)
	dependent := configMap(namespace, "dependent")
	dependent.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}
	create(t, c, dependent)

	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	waitUntilGone(t, c, dependent)
}

func TestDeletedNamespacesGo(t *testing.T) {
	t.Parallel()
	c := newClient(t, plane.Config(t))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plane.Namespace(t)}}
	inside := configMap(namespace.Name, "inside")
	create(t, c, inside)

	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	waitUntilGone(t, c, namespace)
	waitUntilGone(t, c, inside)
}

func TestUserMayDoWhatRBACAllows(t *testing.T) {
	env, namespace := plane.Environment(t), plane.Namespace(t)
	admin := newClient(t, env.Config())
	config, err := env.User("gardener", "gardeners")
	if err != nil {
		t.Fatal(err)
	}
	gardener := newClient(t, config)

	if err := gardener.Create(t.Context(), configMap(namespace, "early")); !apierrors.IsForbidden(err) {
		t.Errorf("without a role the user got %v, want it forbidden", err)
	}
	create(t, admin, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gardeners"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "gardeners"}},
	})
	controlplanetest.Eventually(t, "the role binding does not take hold", func(ctx context.Context) error {
		return gardener.Create(ctx, configMap(namespace, "late"))
	})
}

// The race detector notices users whose certificates are made at once.
func TestUsersAreAddedAtOnce(t *testing.T) {
	env := plane.Environment(t)
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			_, err := env.User(fmt.Sprint("user-", i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestLifeOfAnEnvironment goes through everything that cannot be done to a shared one.
func TestLifeOfAnEnvironment(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	leaks := goleak.IgnoreCurrent()
	env, err := controlplane.Start(t.Context(), controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()}, GarbageCollection: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		controlplanetest.NoLeaks(t, leaks)
	})
	config := env.Config()
	c := newClient(t, config)
	widget := newWidget("kept")
	create(t, c, widget)
	if size, _, _ := unstructured.NestedInt64(widget.Object, "spec", "size"); size != 3 {
		t.Errorf("size is %d, want the default of the schema, 3", size)
	}

	for range 2 { // the second call does nothing
		if err := env.StopAPIServer(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), newWidget("")); !utilnet.IsConnectionRefused(err) {
		t.Errorf("reading from a stopped API server returned %v, want a refused connection", err)
	}
	for range 2 {
		if err := env.StartAPIServer(); err != nil {
			t.Fatal(err)
		}
	}
	after := newWidget("")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), after); err != nil {
		t.Fatalf("the client from before the restart does not work: %v", err)
	}
	if after.GetUID() != widget.GetUID() {
		t.Errorf("the object has the UID %s, want %s", after.GetUID(), widget.GetUID())
	}
	if err := env.Err(); err != nil {
		t.Errorf("the controllers did not survive the restart: %v", err)
	}

	for range 2 {
		if err := env.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.StartAPIServer(); err == nil {
		t.Error("an API server was started in an environment that was stopped, want an error")
	}
}

func TestStartReportsACRDThatIsRefused(t *testing.T) {
	controlplanetest.SkipIfShort(t)
	leaks := goleak.IgnoreCurrent()
	refused := widgets()
	refused.Spec.Versions = nil
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{refused},
	})
	if err == nil || !strings.Contains(err.Error(), "must have exactly one version marked as storage version") {
		t.Errorf("Start returned %v, want the answer of the API server", err)
	}
	if !apierrors.IsInvalid(err) {
		t.Errorf("Start returned an error of type %T, want one of the API server", err)
	}
	controlplanetest.NoLeaks(t, leaks)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// widgets defines Widget, whose size has a default.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.Name, crd.Spec.Group = "widgets.controlplane.test", "controlplane.test"
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
		},
	}
	return crd
}

func newWidget(name string) *unstructured.Unstructured {
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	widget.SetAPIVersion("controlplane.test/v1")
	widget.SetKind("Widget")
	widget.SetNamespace("default")
	widget.SetName(name)
	return widget
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func waitUntilGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	controlplanetest.Eventually(t, object.GetName()+" does not go", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("it is there, deleted at %v", object.GetDeletionTimestamp())
	})
}
