package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier"
	shopv1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

var shopKind = shopv1.GroupVersion.WithKind("Shop")

// definitions returns the definition of a Gizmo, which has the schema of a Shop.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := config.CRD()
	if err != nil {
		t.Fatal(err)
	}
	crd.Name = "gizmos." + shopKind.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Kind: "Gizmo", ListKind: "GizmoList", Plural: "gizmos", Singular: "gizmo",
	}
	return []*apiextensionsv1.CustomResourceDefinition{crd}
}

// runManager runs a manager until the test ends.
func runManager(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ends with: %v", err)
		}
	})
}

func managerOptions() ctrl.Options {
	return ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	}
}

// TestOperator runs the operator of shops as a user who has its role, in real time.
func TestOperator(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{CRDDirectoryPaths: []string{shops}, ErrorIfCRDPathMissing: true, Workloads: true}
	c := newClient(t, start(t, env), shopv1.AddToScheme)
	user, err := env.AddUser(cluster.User{Name: "operator", Groups: []string{"operators"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	role, err := config.Role()
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "operators"}},
	}
	shop := &shopv1.Shop{ObjectMeta: objectMeta("one"), Spec: shopv1.ShopSpec{Image: "image", Replicas: 2}}
	for _, obj := range []client.Object{role, binding, shop} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	options := managerOptions()
	options.Scheme = c.Scheme()
	mgr, err := ctrl.NewManager(user.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	tree := controller.New(espalier.NewConfig(mgr), &registry.Memory{}, time.Minute)
	if err := tree.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	runManager(t, mgr)
	ready := func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(shop.Status.Conditions, shopv1.Ready) {
			return fmt.Errorf("the shop is not ready: %v", shop.Status.Conditions)
		}
		return nil
	}
	controlplanetest.Eventually(t, "the shop is ready", ready)
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace("default")); err != nil || len(pods.Items) != 2 {
		t.Errorf("there are %d Pods, %v; want 2", len(pods.Items), err)
	}
	if err := c.Delete(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the Deployment of a deleted shop is collected", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(shop), &appsv1.Deployment{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// TestEnvtestMovesByItsImport has a suite of envtest, as kubebuilder writes it, whose test plays the controllers of
// workloads by hand.
func TestEnvtestMovesByItsImport(t *testing.T) {
	t.Parallel()
	theirs, ours := reflect.TypeFor[envtest.Environment](), reflect.TypeFor[cluster.Environment]()
	for i := range theirs.NumField() {
		field := theirs.Field(i)
		if !field.IsExported() {
			continue
		}
		if found, ok := ours.FieldByName(field.Name); !ok || found.Type != field.Type {
			t.Errorf("there is no field %s %s", field.Name, field.Type)
		}
	}
	env := &cluster.Environment{
		CRDInstallOptions:     cluster.CRDInstallOptions{Paths: []string{shops}},
		ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: filepath.Join("..", "bin", "k8s"),
		UseExistingCluster:    new(false),
	}
	c := newClient(t, start(t, env), shopv1.AddToScheme)
	d := deployment("a")
	if err := errors.Join(c.Create(t.Context(), d), c.List(t.Context(), &shopv1.ShopList{})); err != nil {
		t.Fatal(err)
	}
	d.Status.Replicas = 1
	if err := c.Status().Update(t.Context(), d); err != nil {
		t.Error(err)
	}
	if err := c.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Error(err)
	}
}

// TestPods has Pods that do not become ready, and a cluster in which none are made.
func TestPods(t *testing.T) {
	t.Parallel()
	pulled := newClient(t, start(t, &cluster.Environment{Workloads: true, Pods: func(*corev1.Pod) cluster.PodBehavior {
		return cluster.PodBehavior{Waiting: "ImagePullBackOff"}
	}}))
	none := newClient(t, start(t, &cluster.Environment{}))
	for _, c := range []client.Client{pulled, none} {
		if err := c.Create(t.Context(), deployment("a")); err != nil {
			t.Fatal(err)
		}
	}
	controlplanetest.Eventually(t, "a Pod waits for its image", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := pulled.List(ctx, pods); err != nil {
			return err
		}
		for _, p := range pods.Items {
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff" {
					return nil
				}
			}
		}
		return fmt.Errorf("the Pods are %v", pods.Items)
	})
	// Garbage is collected there, so the stand-ins have seen all that was before.
	owner := configMap("owner")
	if err := none.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	if err := errors.Join(none.Create(t.Context(), owned), none.Delete(t.Context(), owner)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "what has no owner is collected", func(ctx context.Context) error {
		if err := none.Get(ctx, client.ObjectKeyFromObject(owned), owned); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %w", err)
		}
		return nil
	})
	sets := &appsv1.ReplicaSetList{}
	if err := none.List(t.Context(), sets); err != nil || len(sets.Items) > 0 {
		t.Errorf("there are %d ReplicaSets, %v; want none", len(sets.Items), err)
	}
}
