package mapped_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/mapped"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var (
	plane = controlplanetest.Shared{Options: controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
	}}
	scheme = resources.NewScheme()
	now    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	before = metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
)

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// row is the part of the API server that one test sees.
type row struct {
	client.WithWatch
	t      *testing.T
	server *mapped.Server
	behind client.WithWatch
}

func newRow(t *testing.T, given ...client.Object) *row {
	t.Helper()
	behind, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	options := mapped.Options{Now: func() time.Time { return now }, Revision: 999, Missing: "what to do"}
	r := &row{t: t, server: mapped.New(behind, options), behind: behind}
	if err := r.server.Give(t.Context(), given...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.WithWatch = r.server.Client(mapped.ClientOptions{FieldManager: "row"})
	return r
}

// must fails the test for an error.
func (r *row) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// equal fails the test unless two values look the same.
func (r *row) equal(what string, got, want any) {
	r.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		r.t.Errorf("%s is %s, want %s", what, g, w)
	}
}

func identified(obj client.Object, uid, version string) {
	obj.SetUID(types.UID(uid))
	obj.SetResourceVersion(version)
	obj.SetGeneration(1)
	obj.SetCreationTimestamp(before)
}

func namespace(name string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	identified(ns, "uid-of-"+name, "1")
	return ns
}

func widget(changes ...func(*resources.Widget)) *resources.Widget {
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gadget"}}
	identified(w, "uid-of-gadget", "999")
	w.Generation = 7
	for _, change := range changes {
		change(w)
	}
	return w
}

func settings(changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings"}}
	identified(cm, "uid-of-settings", "5")
	cm.Data = map[string]string{"k": "v"}
	for _, change := range changes {
		change(cm)
	}
	return cm
}

func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	return d
}

func owner(name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: resources.GroupVersion.String(), Kind: "Widget", Name: name, UID: types.UID(uid), Controller: new(true),
	}
}

func TestGivenObjectsAreAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	given := widget(func(w *resources.Widget) {
		w.Finalizers = []string{"example.com/hold"}
		w.DeletionTimestamp = &before
		w.Status.Fields = map[string]string{"owner": "uid-of-gadget"}
		w.Labels = map[string]string{"self": "uid-of-gadget"}
	})
	child := settings(func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{owner("gadget", "uid-of-gadget")}
	})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	identified(service, "uid-of-web", "6")
	r := newRow(t, child, service, given, namespace("ns"))

	for _, want := range []client.Object{given, child, service, namespace("ns")} {
		got := want.DeepCopyObject().(client.Object)
		r.must(r.Get(t.Context(), client.ObjectKeyFromObject(want), got))
		wanted, seen := inJSON(r, want), inJSON(r, got)
		delete(seen["metadata"].(map[string]any), "deletionGracePeriodSeconds")
		r.equal(want.GetName(), seen, wanted)
	}
}

func inJSON(r *row, obj client.Object) map[string]any {
	r.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	r.must(err)
	return content
}

func TestWritesAreMapped(t *testing.T) {
	t.Parallel()
	optimistic := client.MergeFromWithOptions(widget(), client.MergeFromWithOptimisticLock{})
	labelled := widget(func(w *resources.Widget) { w.Labels = map[string]string{"l": "uid-of-settings"} })
	uid := types.UID("uid-of-settings")
	for name, test := range map[string]struct {
		call func(ctx context.Context, r *row) error
		want func(error) bool
		// see checks what the API server has.
		see func(ctx context.Context, r *row)
	}{
		"create with an owner": {call: func(ctx context.Context, r *row) error {
			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
			one.OwnerReferences = []metav1.OwnerReference{owner("gadget", "uid-of-gadget")}
			err := r.Create(ctx, one)
			r.equal("the owner", one.OwnerReferences[0].UID, "uid-of-gadget")
			r.equal("the version", one.ResourceVersion, "1000")
			r.equal("the namespace", one.Namespace, "ns")
			r.equal("the time", one.CreationTimestamp.UTC(), now)
			return err
		}, see: func(ctx context.Context, r *row) {
			behind := r.seen(ctx, &corev1.ConfigMapList{}).(*corev1.ConfigMapList)
			w := r.seen(ctx, &resources.WidgetList{}).(*resources.WidgetList)
			for _, cm := range behind.Items {
				if cm.Name == "one" {
					r.equal("the owner behind", cm.OwnerReferences[0].UID, w.Items[0].UID)
				}
			}
		}},
		"update": {call: func(ctx context.Context, r *row) error {
			return r.Update(ctx, settings(func(cm *corev1.ConfigMap) { cm.Data["k"] = "w" }))
		}},
		"update of an old version": {call: func(ctx context.Context, r *row) error {
			return r.Update(ctx, settings(func(cm *corev1.ConfigMap) { cm.ResourceVersion = "4" }))
		}, want: apierrors.IsConflict},
		"update without a change": {call: func(ctx context.Context, r *row) error {
			same := settings()
			err := r.Update(ctx, same)
			r.equal("the version", same.ResourceVersion, "5")
			return err
		}},
		"update of another UID": {call: func(ctx context.Context, r *row) error {
			return r.Update(ctx, settings(func(cm *corev1.ConfigMap) { cm.UID = "other" }))
		}, want: apierrors.IsConflict},
		"delete with preconditions": {call: func(ctx context.Context, r *row) error {
			version := "5"
			return r.Delete(ctx, settings(), client.Preconditions{UID: &uid, ResourceVersion: &version})
		}},
		"delete of another UID": {call: func(ctx context.Context, r *row) error {
			other := types.UID("uid-of-gadget")
			err := r.Delete(ctx, settings(), client.Preconditions{UID: &other})
			if err != nil && !strings.Contains(err.Error(), "uid-of-settings") {
				r.t.Errorf("the error has no UID of the row: %v", err)
			}
			return err
		}, want: apierrors.IsConflict},
		"merge patch of a version": {call: func(ctx context.Context, r *row) error {
			w := labelled.DeepCopy()
			err := r.Patch(ctx, w, optimistic)
			r.equal("the generation", w.Generation, 7)
			r.equal("the label", w.Labels["l"], "uid-of-settings")
			return err
		}, see: func(ctx context.Context, r *row) {
			list := &resources.WidgetList{}
			r.must(r.List(ctx, list, client.MatchingLabels{"l": "uid-of-settings"}))
			r.equal("objects with the label", len(list.Items), 1)
		}},
		"JSON patch that tests": {call: func(ctx context.Context, r *row) error {
			patch := `[{"op":"test","path":"/metadata/uid","value":"uid-of-settings"},` +
				`{"op":"test","path":"/metadata/resourceVersion","value":"5"},` +
				`{"op":"add","path":"/data/x","value":"y"}]`
			return r.Patch(ctx, settings(), client.RawPatch(types.JSONPatchType, []byte(patch)))
		}},
		"apply": {call: func(ctx context.Context, r *row) error {
			ac := corev1ac.ConfigMap("applied", "ns").WithData(map[string]string{"a": "b"})
			err := r.Apply(ctx, ac, client.FieldOwner("me"))
			r.equal("the version", *ac.ResourceVersion, "1000")
			r.equal("the namespace", *ac.Namespace, "ns")
			return err
		}},
		"apply of another's field": {call: func(ctx context.Context, r *row) error {
			ac := corev1ac.ConfigMap("settings", "ns").WithData(map[string]string{"k": "b"})
			return r.Apply(ctx, ac, client.FieldOwner("me"))
		}, want: apierrors.IsConflict},
		"update of the status": {call: func(ctx context.Context, r *row) error {
			w := widget()
			w.Status.Fields = map[string]string{"a": "b"}
			return r.Status().Update(ctx, w)
		}, see: func(ctx context.Context, r *row) {
			w := &resources.Widget{}
			r.must(r.Get(ctx, client.ObjectKeyFromObject(widget()), w))
			r.equal("the status", w.Status.Fields, map[string]string{"a": "b"})
			r.equal("the generation", w.Generation, 7)
		}},
		"scale of a version": {call: func(ctx context.Context, r *row) error {
			d := web()
			r.must(r.Create(ctx, d))
			scale := &autoscalingv1.Scale{}
			r.must(r.SubResource("scale").Get(ctx, d, scale))
			r.equal("the version", scale.ResourceVersion, d.ResourceVersion)
			scale.Spec.Replicas = 3
			return r.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale))
		}, see: func(ctx context.Context, r *row) {
			d := web()
			r.must(r.Get(ctx, client.ObjectKeyFromObject(d), d))
			r.equal("the replicas", *d.Spec.Replicas, 3)
		}},
		"scale of an old version": {call: func(ctx context.Context, r *row) error {
			d := web()
			r.must(r.Create(ctx, d))
			scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: d.ResourceVersion}}
			d.Labels = map[string]string{"a": "b"}
			r.must(r.Update(ctx, d))
			return r.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale))
		}, want: apierrors.IsConflict},
		"cluster-scoped": {call: func(ctx context.Context, r *row) error {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "role-"}}
			err := r.Create(ctx, role)
			r.equal("the name", role.Name, "role-001")
			return err
		}, see: func(ctx context.Context, r *row) {
			roles := &rbacv1.ClusterRoleList{}
			r.must(r.List(ctx, roles))
			r.equal("roles", len(roles.Items), 1)
			r.must(r.DeleteAllOf(ctx, &rbacv1.ClusterRole{}))
			r.must(r.List(ctx, roles))
			r.equal("roles that are left", len(roles.Items), 0)
		}},
		"references to a namespace": {call: func(ctx context.Context, r *row) error {
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
			binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "sa"}}
			err := r.Create(ctx, binding)
			r.equal("the subject", binding.Subjects[0].Namespace, "ns")
			return err
		}, see: func(ctx context.Context, r *row) {
			for _, b := range r.seen(ctx, &rbacv1.RoleBindingList{}).(*rbacv1.RoleBindingList).Items {
				r.equal("the subject behind", b.Subjects[0].Namespace, b.Namespace)
			}
		}},
		"missing namespace": {call: func(ctx context.Context, r *row) error {
			err := r.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "one"}})
			if err != nil && !strings.Contains(err.Error(), `"nowhere"`) {
				r.t.Errorf("the error has another name: %v", err)
			}
			return err
		}, want: apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRow(t, namespace("ns"), widget(), settings())
			err := test.call(t.Context(), r)
			if test.want == nil {
				r.must(err)
			} else if !test.want(err) {
				t.Fatalf("got %v", err)
			}
			if test.see != nil {
				test.see(t.Context(), r)
			}
		})
	}
}

// seen lists what the API server has in the namespace of the row.
func (r *row) seen(ctx context.Context, list client.ObjectList) client.ObjectList {
	r.t.Helper()
	namespaces := &corev1.NamespaceList{}
	r.must(r.behind.List(ctx, namespaces))
	r.must(r.behind.List(ctx, list, client.InNamespace("ns"+r.server.Suffix())))
	return list
}

func TestManagedFieldsAreThoseGiven(t *testing.T) {
	t.Parallel()
	given := settings(func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{owner("gadget", "uid-of-gadget")}
		cm.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "them", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			Time: &before, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:k":{}},` +
				`"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-of-gadget\"}":{}}}}`),
		}}
	})
	r := newRow(t, namespace("ns"), widget(), given)
	got := &corev1.ConfigMap{}
	r.must(r.Get(t.Context(), client.ObjectKeyFromObject(given), got))
	r.equal("what is owned", inJSON(r, got)["metadata"], inJSON(r, given)["metadata"])
	w := r.seen(t.Context(), &resources.WidgetList{}).(*resources.WidgetList).Items[0]
	behind := r.seen(t.Context(), &corev1.ConfigMapList{}).(*corev1.ConfigMapList).Items[0]
	if fields := behind.ManagedFields[0].FieldsV1.GetRawString(); !strings.Contains(fields, string(w.UID)) {
		t.Errorf("behind, %s does not own the reference to %s", fields, w.UID)
	}
	err := r.Apply(t.Context(), corev1ac.ConfigMap("settings", "ns").WithData(map[string]string{"k": "x"}),
		client.FieldOwner("me"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"them"`) {
		t.Errorf("got %v", err)
	}
	r.must(r.Apply(t.Context(), corev1ac.ConfigMap("settings", "ns"), client.FieldOwner("them")))
	r.must(r.Get(t.Context(), client.ObjectKeyFromObject(given), got))
	r.equal("what is left", got.Data, map[string]string{})
	r.equal("the owners that are left", len(got.OwnerReferences), 0)
}

func TestWhatACacheHasNotSeenIsNotRead(t *testing.T) {
	t.Parallel()
	r := newRow(t, namespace("ns"), settings())
	r.server.Hide(store.Key{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "settings"})
	cache := r.server.Client(mapped.ClientOptions{Cached: true})
	err := cache.Get(t.Context(), client.ObjectKeyFromObject(settings()), settings())
	if !apierrors.IsNotFound(err) || err.Error() != `configmaps "settings" not found` {
		t.Errorf("got %v", err)
	}
	list := &corev1.ConfigMapList{}
	r.must(cache.List(t.Context(), list))
	r.equal("what is listed", len(list.Items), 0)
	r.must(r.List(t.Context(), list))
	r.equal("what is there", len(list.Items), 1)
	r.equal("catching up", r.server.CatchUp(), true)
	r.must(cache.Get(t.Context(), client.ObjectKeyFromObject(settings()), settings()))
}

func TestAKindThatIsNotServedIsNamed(t *testing.T) {
	t.Parallel()
	behind, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"})
	err = mapped.New(behind, mapped.Options{Missing: "what to do"}).Give(t.Context(), u)
	if err == nil || !strings.Contains(err.Error(), "the server does not serve App of example.com/v1: what to do") {
		t.Errorf("got %v", err)
	}
}

func TestTwoObjectsOfOneUIDCannotBeGiven(t *testing.T) {
	t.Parallel()
	err := newRow(t).server.Give(t.Context(), settings(), widget(func(w *resources.Widget) { w.UID = "uid-of-settings" }))
	if err == nil || !strings.Contains(err.Error(), `cannot give ConfigMap ns/settings and Widget ns/gadget: `+
		`both have the UID "uid-of-settings"`) {
		t.Errorf("got %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	held := settings(func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/hold"} })
	r := newRow(t, namespace("ns"), held)
	r.must(r.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}}))
	r.must(r.server.Close(t.Context()))
	r.equal("ConfigMaps", len(r.seen(t.Context(), &corev1.ConfigMapList{}).(*corev1.ConfigMapList).Items), 0)
	roles := &rbacv1.ClusterRoleList{}
	r.must(r.List(t.Context(), roles))
	r.equal("roles", len(roles.Items), 0)
}
