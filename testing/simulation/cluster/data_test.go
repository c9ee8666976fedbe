package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// everything returns the objects of some kinds, as JSON, by their kinds and names, but for a namespace that ends.
func everything(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &corev1.NodeList{}, &corev1.EventList{},
		&corev1.ServiceAccountList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &rbacv1.ClusterRoleList{},
		&rbacv1.ClusterRoleBindingList{}, &shopv1.ShopList{},
	} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var items struct {
			Items []struct{ Metadata metav1.ObjectMeta }
		}
		var texts struct{ Items []json.RawMessage }
		if err := json.Unmarshal(text, &items); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &texts); err != nil {
			t.Fatal(err)
		}
		for i, item := range items.Items {
			all[fmt.Sprintf("%T %s/%s", list, item.Metadata.Namespace, item.Metadata.Name)] = string(texts.Items[i])
		}
		delete(all, "*v1.NamespaceList /ends")
	}
	return all
}

// ready waits until a number of Pods of a Deployment is ready.
func ready(t *testing.T, c client.Client, name string, replicas int32) {
	t.Helper()
	controlplanetest.Eventually(t, fmt.Sprintf("%d Pods of %s are ready", replicas, name), func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != replicas || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("the status is %v", d.Status)
		}
		return nil
	})
}

// TestDataFile starts a cluster with the file of another one.
func TestDataFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "data")
	environment := func() *cluster.Environment {
		return &cluster.Environment{DataFile: path, Sync: true, CRDDirectoryPaths: []string{shops}, Workloads: true}
	}
	env := environment()
	config := start(t, env)
	c := newClient(t, config, shopv1.AddToScheme)
	generated := func(c client.Client) string {
		obj := configMap("")
		obj.GenerateName = "a-"
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		return obj.Name
	}
	names := map[string]bool{}
	for range 20 {
		names[generated(c)] = true
	}
	account, first, deleted := &corev1.ServiceAccount{ObjectMeta: objectMeta("robot")}, configMap("first"), configMap("deleted")
	event := &corev1.Event{ObjectMeta: objectMeta("event"), InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
	shop := &shopv1.Shop{ObjectMeta: objectMeta("one"), Spec: shopv1.ShopSpec{Image: "image", Replicas: 2}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ends", Finalizers: []string{"example.com/wait"}}}
	for _, obj := range []client.Object{account, first, deleted, event, shop, namespace, deployment("web")} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{deleted, namespace} {
		if err := c.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	ready(t, c, "web", 1)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", info.Mode(), err)
	}
	_, err := environment().Start()
	wantError(t, err, "DataFile", path, "another cluster uses the file")
	before := settled(t, c)
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}

	config = start(t, environment())
	again := newClient(t, config, shopv1.AddToScheme)
	if diff := cmp.Diff(before, everything(t, again)); diff != "" {
		t.Errorf("the objects are not the same after a restart (-before +after):\n%s", diff)
	}
	for range 20 {
		if name := generated(again); names[name] {
			t.Errorf("the name %s was given a second time", name)
		}
	}
	expired(t, again, first.ResourceVersion)
	recreated := configMap("deleted")
	if err := again.Create(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	if recreated.UID == deleted.UID || number(t, recreated) <= highest(t, before) {
		t.Errorf("a new object has the UID %s and the resource version %s", recreated.UID, recreated.ResourceVersion)
	}
	refuses(t, env, config, token.Status.Token)
	scaled := &appsv1.Deployment{}
	if err := again.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, scaled); err != nil {
		t.Fatal(err)
	}
	scaled.Spec.Replicas = new(int32(3))
	if err := again.Update(t.Context(), scaled); err != nil {
		t.Fatal(err)
	}
	ready(t, again, "web", 3)
	controlplanetest.Eventually(t, "a namespace ends that was being deleted", func(ctx context.Context) error {
		if err := again.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return client.IgnoreNotFound(err)
		}
		namespace.Finalizers = nil
		return fmt.Errorf("it is there: %w", again.Update(ctx, namespace))
	})
}

// settled returns the objects when the stand-ins have nothing left to do.
func settled(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	before := everything(t, c)
	controlplanetest.Eventually(t, "nothing changes any more", func(context.Context) error {
		time.Sleep(1500 * time.Millisecond) // a stand-in may be about to write
		now := everything(t, c)
		diff := cmp.Diff(before, now)
		before = now
		if diff != "" {
			return fmt.Errorf("it changes: %s", diff)
		}
		return nil
	})
	return before
}

// expired fails the test unless a watch from a resource version ends with 410.
func expired(t *testing.T, c client.WithWatch, version string) {
	t.Helper()
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: version},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the restart begins with %v, want 410 Expired", event)
	}
}

func number(t *testing.T, obj client.Object) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(obj.GetResourceVersion(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// highest returns the latest resource version of some objects.
func highest(t *testing.T, objects map[string]string) int {
	t.Helper()
	latest := 0
	for _, text := range objects {
		obj := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		latest = max(latest, number(t, obj))
	}
	return latest
}

// refuses fails the test if a cluster accepts credentials of an earlier one.
func refuses(t *testing.T, earlier *cluster.Environment, config *rest.Config, token string) {
	t.Helper()
	robot := rest.AnonymousClientConfig(config)
	robot.BearerToken = token
	if err := newClient(t, robot).List(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a token of before the restart the error is %v, want 401", err)
	}
	admin, err := clientcmd.RESTConfigFromKubeConfig(earlier.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	admin.Host, admin.CAData = config.Host, config.CAData
	if err := newClient(t, admin).List(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate of before the restart the error is %v, want 401", err)
	}
}
