package differential_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/internal/differential"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func behind(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compared returns a client of both servers. Wrong makes memory answer in another way than it does.
func compared(
	t *testing.T, wrong interceptor.Funcs, given ...client.Object,
) (client.Client, *differential.Server) {
	t.Helper()
	memory := store.New(store.Options{Scheme: clientgoscheme.Scheme})
	if err := memory.Give(append(given, settings())...); err != nil {
		t.Fatal(err)
	}
	server := differential.New(behind(t))
	var objs []client.Object
	for _, obj := range memory.Objects() {
		// A client shows managed fields only if some are given.
		objs = append(objs, obj.DeepCopyObject().(client.Object))
		for _, g := range given {
			if g.GetName() == obj.GetName() {
				objs[len(objs)-1].SetManagedFields(g.GetManagedFields())
			}
		}
	}
	server.Give(t.Context(), objs...)
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	inMemory := interceptor.NewClient(memory.Client(store.ClientOptions{FieldManager: "row"}), wrong)
	return server.Client(inMemory, "row", false), server
}

// The calls depend on what an API server assigns, or on names that end with a suffix there. Given are a child of
// settings, which has a finalizer and is being deleted, and a Deployment with a status.
func TestWhatAServerAssignsIsMapped(t *testing.T) {
	t.Parallel()
	before := metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	parent, child, running := settings(), settings(), web()
	parent.Name, parent.UID, parent.ResourceVersion, parent.Generation = "parent", "uid-of-parent", "5", 7
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "uid-of-parent"}
	child.Name, child.OwnerReferences, child.UID = "child", []metav1.OwnerReference{owner}, "uid-of-child"
	child.Labels = map[string]string{"owner": "uid-of-parent"}
	child.Finalizers, child.DeletionTimestamp = []string{"example.com/hold"}, &before
	child.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "them", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		Time: &before, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:k":{}},` +
			`"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-of-parent\"}":{}}}}`),
	}}
	running.Name, running.UID, running.Generation, running.ResourceVersion = "running", "uid-of-running", 3, "6"
	running.Status.Replicas, running.Status.ObservedGeneration = 1, 3
	get := func(ctx context.Context, c client.Client, obj client.Object) error {
		return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}
	uid, other, version := types.UID("uid-of-parent"), types.UID("uid-of-child"), "5"
	for name, test := range map[string]struct {
		call func(ctx context.Context, c client.Client) error
		want func(error) bool
	}{
		"given objects": {call: func(ctx context.Context, c client.Client) error {
			for _, obj := range []client.Object{parent, child, running} {
				if err := get(ctx, c, obj.DeepCopyObject().(client.Object)); err != nil {
					return err
				}
			}
			return c.List(ctx, &corev1.ConfigMapList{})
		}},
		"create with an owner": {call: func(ctx context.Context, c client.Client) error {
			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
			one.OwnerReferences = []metav1.OwnerReference{owner}
			return c.Create(ctx, one)
		}},
		"update": {call: func(ctx context.Context, c client.Client) error {
			changed := parent.DeepCopy()
			changed.Data["k"] = "w"
			return c.Update(ctx, changed)
		}},
		"update of a generation": {call: func(ctx context.Context, c client.Client) error {
			changed := running.DeepCopy()
			changed.Spec.Replicas = new(int32(3))
			return c.Update(ctx, changed)
		}},
		"update of an old version": {call: func(ctx context.Context, c client.Client) error {
			old := parent.DeepCopy()
			old.ResourceVersion = "4"
			return c.Update(ctx, old)
		}, want: apierrors.IsConflict},
		"update of another UID": {call: func(ctx context.Context, c client.Client) error {
			changed := parent.DeepCopy()
			changed.UID = "other"
			return c.Update(ctx, changed)
		}, want: apierrors.IsConflict},
		"delete with preconditions": {call: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, parent.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
		}},
		"delete of another UID": {call: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, parent.DeepCopy(), client.Preconditions{UID: &other})
		}, want: apierrors.IsConflict},
		"labels that are UIDs": {call: func(ctx context.Context, c client.Client) error {
			list := &corev1.ConfigMapList{}
			err := c.List(ctx, list, client.MatchingLabels{"owner": "uid-of-parent"})
			if len(list.Items) != 1 {
				t.Errorf("%d objects have the label, want 1", len(list.Items))
			}
			return err
		}},
		"field selector": {call: func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"metadata.namespace": "ns"})
		}},
		"JSON patch that tests": {call: func(ctx context.Context, c client.Client) error {
			patch := `[{"op":"test","path":"/metadata/uid","value":"uid-of-parent"},` +
				`{"op":"test","path":"/metadata/resourceVersion","value":"5"},` +
				`{"op":"add","path":"/data/x","value":"y"}]`
			return c.Patch(ctx, parent.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
		}},
		"apply of another's field": {call: func(ctx context.Context, c client.Client) error {
			ac := corev1ac.ConfigMap("child", "ns").WithData(map[string]string{"k": "b"})
			return c.Apply(ctx, ac, client.FieldOwner("me"))
		}, want: apierrors.IsConflict},
		"apply that gives up an owner": {call: func(ctx context.Context, c client.Client) error {
			if err := c.Apply(ctx, corev1ac.ConfigMap("child", "ns"), client.FieldOwner("them")); err != nil {
				return err
			}
			left := child.DeepCopy()
			err := get(ctx, c, left)
			if len(left.OwnerReferences) > 0 || len(left.Data) > 0 {
				t.Errorf("%v and %v are left, want nothing", left.OwnerReferences, left.Data)
			}
			return err
		}},
		"removal of a finalizer": {call: func(ctx context.Context, c client.Client) error {
			released := child.DeepCopy()
			if err := get(ctx, c, released); err != nil {
				return err
			}
			released.Finalizers = nil
			if err := c.Update(ctx, released); err != nil {
				return err
			}
			return get(ctx, c, released)
		}, want: apierrors.IsNotFound},
		"scale of an old version": {call: func(ctx context.Context, c client.Client) error {
			scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "6"}}
			changed := running.DeepCopy()
			changed.Labels = map[string]string{"a": "b"}
			if err := c.Update(ctx, changed); err != nil {
				return err
			}
			return c.SubResource("scale").Update(ctx, changed, client.WithSubResourceBody(scale))
		}, want: apierrors.IsConflict},
		"objects in no namespace": {call: func(ctx context.Context, c client.Client) error {
			if err := c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "role-"}}); err != nil {
				return err
			}
			if err := c.List(ctx, &rbacv1.ClusterRoleList{}); err != nil {
				return err
			}
			if err := c.DeleteAllOf(ctx, &rbacv1.ClusterRole{}); err != nil {
				return err
			}
			return c.List(ctx, &rbacv1.ClusterRoleList{})
		}},
		"references to a namespace": {call: func(ctx context.Context, c client.Client) error {
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
			binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "sa"}}
			return c.Create(ctx, binding)
		}},
		"missing namespace": {call: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "one"}})
		}, want: apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := []client.Object{parent.DeepCopy(), child.DeepCopy(), running.DeepCopy()}
			c, server := compared(t, interceptor.Funcs{}, given...)
			err := test.call(t.Context(), c)
			if test.want == nil && err != nil || test.want != nil && !test.want(err) {
				t.Errorf("got the error %v", err)
			}
			if first, ok := server.First(); ok {
				t.Errorf("differs: %s", first)
			}
		})
	}
}

func TestWhatACacheHasNotSeenIsNoDifference(t *testing.T) {
	t.Parallel()
	_, server := compared(t, interceptor.Funcs{})
	// Memory is a cache without the object.
	empty := store.New(store.Options{Scheme: clientgoscheme.Scheme}).Client(store.ClientOptions{})
	server.Hide(store.Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), Namespace: "ns", Name: "settings"})
	cache := server.Client(empty, "row", true)
	if err := cache.Get(t.Context(), client.ObjectKeyFromObject(settings()), settings()); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
	if err := cache.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
		t.Error(err)
	}
	if first, ok := server.First(); ok {
		t.Errorf("differs: %s", first)
	}
	server.CatchUp()
	_ = cache.Get(t.Context(), client.ObjectKeyFromObject(settings()), settings())
	if _, ok := server.First(); !ok {
		t.Error("there is no difference once the cache has caught up")
	}
}

func TestAKindThatIsNotServedIsNamed(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("example.com/v1")
	u.SetKind("App")
	u.SetName("a")
	server := differential.New(behind(t))
	server.Give(t.Context(), u)
	const want = "the server does not take what is given: App a: install its CustomResourceDefinition"
	if first, _ := server.First(); !strings.HasPrefix(first.String(), want) {
		t.Errorf("got %q, want %q", first, want)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	held := settings()
	held.Name, held.Labels, held.Finalizers = "held", map[string]string{"left": "behind"}, []string{"example.com/hold"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "left-behind"}}
	c, server := compared(t, interceptor.Funcs{}, held)
	if err := c.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	left := func() (names []string) {
		maps, roles := &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}
		if err := behind(t).List(t.Context(), maps, client.MatchingLabels(held.Labels)); err != nil {
			t.Fatal(err)
		}
		if err := behind(t).List(t.Context(), roles); err != nil {
			t.Fatal(err)
		}
		for _, cm := range maps.Items {
			names = append(names, cm.Name)
		}
		for _, role := range roles.Items {
			if name, _, _ := strings.Cut(role.Name, "-rt"); name == "left-behind" {
				names = append(names, name)
			}
		}
		return names
	}
	if got, want := left(), []string{"held", "left-behind"}; !slices.Equal(got, want) {
		t.Errorf("before, there are %v, want %v", got, want)
	}
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("%v are left behind", got)
	}
}

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings"}, Data: map[string]string{"k": "v"},
	}
}

func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}
